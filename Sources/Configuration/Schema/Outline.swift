import WireText

/// What one mapping of a configuration may hold: written down while its reader asks a `Section` for it, so that there is
/// no second list of keys. Used by one thread.
final class Outline {
    struct Key {
        var name: String
        var shape: Shape
        /// What holds when the key is not there.
        var usual: JSON?
        var isDeprecated = false
    }

    /// What has to be there, and what may not.
    struct Rules {
        /// Of each of these at least one.
        var needed: [[String]] = []
        var refused: [String] = []
    }

    /// Rules that hold where `key` is one of `words`.
    struct Case {
        var key: String
        var words: [String]
        /// And where it is not there.
        var isUsual: Bool
        var rules = Rules()
    }

    /// In the order in which the reader asks for them.
    private(set) var keys: [Key] = []
    private(set) var rules = Rules()
    private(set) var cases: [Case] = []
    /// One of these, and only one.
    private(set) var alternatives: [String] = []
    private var openCase: Case?

    /// What was said of a key first stays when it is asked for once more.
    func add(_ name: String, _ shape: Shape? = nil, usual: JSON? = nil) {
        guard let index = keys.firstIndex(where: { $0.name == name }) else {
            keys.append(Key(name: name, shape: shape ?? .anything, usual: usual))
            return
        }
        if let shape, case .anything = keys[index].shape { keys[index].shape = shape }
        keys[index].usual = keys[index].usual ?? usual
    }

    func deprecate(_ name: String) {
        add(name)
        for index in keys.indices where keys[index].name == name { keys[index].isDeprecated = true }
    }

    func need(_ oneOf: [String]) {
        if openCase?.rules.needed.append(oneOf) == nil { rules.needed.append(oneOf) }
    }

    func refuse(_ keys: [String]) {
        if openCase?.rules.refused.append(contentsOf: keys) == nil { rules.refused += keys }
    }

    func needOnlyOne(of keys: [String]) { alternatives = keys }

    /// What `tell` needs and refuses counts in this case only.
    func inCase(_ key: String, _ words: [String], isUsual: Bool, _ tell: () -> Void) {
        openCase = Case(key: key, words: words, isUsual: isUsual)
        tell()
        if let openCase { cases.append(openCase) }
        openCase = nil
    }
}
