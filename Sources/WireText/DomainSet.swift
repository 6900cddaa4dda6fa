/// Domains in lower case. Each stands for itself and all names below it.
public struct DomainSet: Sendable, Equatable {
    /// Domains, none of which is below another.
    public let names: Set<String>

    public init(_ names: some Sequence<String>) {
        let all = Set(names)
        self.names = all.filter { name in !Self.parents(of: name).contains { all.contains(String($0)) } }
    }

    public var isEmpty: Bool { names.isEmpty }

    /// Whether the name is one of the domains, or below one.
    public func covers(_ name: String) -> Bool {
        !isEmpty && (names.contains(name) || Self.parents(of: name).contains { names.contains(String($0)) })
    }

    /// Returns the parents of a name: for `api.example.com`, `example.com` and `com`.
    private static func parents(of name: String) -> some Sequence<Substring> {
        sequence(state: name[...]) { rest -> Substring? in
            guard let dot = rest.firstIndex(of: ".") else { return nil }
            rest = rest[rest.index(after: dot)...]
            return rest
        }
    }
}
