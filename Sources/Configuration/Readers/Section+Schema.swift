import WireText

// Records for the schema, and rules about several keys. Some of the rules are part of the schema.
extension Section {
    /// Records the accepted values of a key with a special reader. Without a record, the schema accepts any value.
    func tell(_ key: String, _ shape: @autoclosure () -> Shape) { outline?.add(key, shape()) }

    /// Records a default that `read(_:into:_:)` can't know.
    func tell(_ key: String, usually text: String) { outline?.add(key, usual: .string(text)) }
    func tell(_ key: String, usually flag: Bool) { outline?.add(key, usual: .bool(flag)) }

    func deprecate(_ keys: String...) {
        for key in keys { outline?.deprecate(key) }
    }

    // MARK: Keys that belong together

    /// Requires at least one of these keys. Reports their absence at the section, or at the key that requires them.
    func need(_ keys: String..., for location: String? = nil, saying message: @autoclosure () -> String) {
        outline?.need(keys)
        guard outline == nil, !keys.contains(where: has) else { return }
        if let location { error(location, message()) } else { diagnostics.error(position, message()) }
    }

    /// Reports each of these keys that is present, at its own position or at the key that excludes it.
    func refuse(_ keys: [String], for location: String? = nil, saying message: @autoclosure () -> String) {
        outline?.refuse(keys)
        for key in keys where has(key) { error(location ?? key, message()) }
    }

    /// Reports a key that is present together with `other`, or without `missing`. The schema does not have this rule.
    func refuse(_ key: String, with other: String? = nil, without missing: String? = nil, saying message: String) {
        guard has(key), other.map(has) ?? true, missing.map({ !has($0) }) ?? true else { return }
        error(key, message)
    }

    /// Runs checks that depend on a key's word: for the schema once with each word, otherwise only with the word found.
    /// - Parameters:
    ///   - words: all cases with their spellings.
    ///   - found: the present or default case; `nil` for an invalid word.
    ///   - usual: the case that applies without the key; `nil` if other keys decide it.
    func check<Case: Equatable>(
        by key: String, _ found: Case?, among words: [(case: Case, words: [String])], usual: Case? = nil,
        _ check: (Case) -> Void
    ) {
        guard let outline else {
            if let found { check(found) }
            return
        }
        for (value, words) in words {
            outline.inCase(key, words, isUsual: value == usual) { check(value) }
        }
    }
}
