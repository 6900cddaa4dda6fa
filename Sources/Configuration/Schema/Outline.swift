import WireText

/// The keys of a mapping, recorded while a reader asks a `Section` for them. So no separate list of keys exists.
/// Use it on one thread.
final class Outline {
    struct Key {
        var name: String
        var shape: Shape
        var usual: JSON?
        var isDeprecated = false
    }

    struct Constraints {
        /// Groups of keys. At least one key of each group is required.
        var needed: [[String]] = []
        var refused: [String] = []
    }

    /// Rules that apply when `key` is one of `words`.
    struct Case {
        var key: String
        var words: [String]
        /// Whether the rules also apply without the key.
        var isUsual: Bool
        var constraints = Constraints()
    }

    /// Keys in the order in which the reader asks for them.
    private(set) var keys: [Key] = []
    private(set) var constraints = Constraints()
    private(set) var cases: [Case] = []
    /// Keys of which exactly one is required. The reader reports violations itself.
    var alternatives: [String] = []
    private var openCase: Case?

    /// Records a key. Another record of the same key only fills in a missing shape or default.
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
        if openCase?.constraints.needed.append(oneOf) == nil { constraints.needed.append(oneOf) }
    }

    func refuse(_ keys: [String]) {
        if openCase?.constraints.refused.append(contentsOf: keys) == nil { constraints.refused += keys }
    }

    /// Calls `tell`, and records its `need` and `refuse` as rules of this case only.
    func inCase(_ key: String, _ words: [String], isUsual: Bool, _ tell: () -> Void) {
        openCase = Case(key: key, words: words, isUsual: isUsual)
        tell()
        if let openCase { cases.append(openCase) }
        openCase = nil
    }
}
