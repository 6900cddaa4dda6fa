/// Domains, each with all names below it. In lower case.
public struct DomainSet: Sendable, Equatable {
    /// None is below another.
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

    /// `example.com` and `com` of `api.example.com`.
    private static func parents(of name: String) -> some Sequence<Substring> {
        sequence(state: name[...]) { rest -> Substring? in
            guard let dot = rest.firstIndex(of: ".") else { return nil }
            rest = rest[rest.index(after: dot)...]
            return rest
        }
    }
}
