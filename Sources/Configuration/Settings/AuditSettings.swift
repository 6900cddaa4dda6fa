/// Where it is written who was given which credential.
public enum AuditSettings: Sendable, Equatable {
    /// Appended to; reopened when the configuration is read again.
    case file(String)
    case standardError
}

extension Section {
    /// The key `audit`: `stderr`, or a mapping with `file`.
    func auditSettings() -> AuditSettings? {
        guard let node = node("audit") else { return nil }
        if case .scalar = node.content {
            return value(of: node, "audit") { text throws(Misfit) in
                guard text == "stderr" else { throw Misfit("write `stderr`, or `{file: PATH}`") }
                return .standardError
            }
        }
        guard let section = Section(node, path: "audit", pattern: "audit", diagnostics) else { return nil }
        defer { section.finish() }
        guard section.has("file") else {
            diagnostics.error(section.position, "audit: write `file: PATH`, or `audit: stderr`")
            return nil
        }
        return section.value("file", Grammar.nonempty).map { .file(diagnostics.resolve(path: $0)) }
    }
}
