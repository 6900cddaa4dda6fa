/// Destination of the audit stream, which records the credentials given to callers.
public enum AuditSettings: Sendable, Equatable {
    /// Path of a file to append to. The proxy reopens the file at each reload.
    case file(String)
    case standardError
}

extension Section {
    /// Reads the key `audit`: `stderr`, or a mapping with `file`.
    func auditSettings() -> AuditSettings? {
        tell("audit", .any([.value(.words(["stderr"])), .section { _ = Self.auditFile($0) }]))
        guard let node = node("audit") else { return nil }
        if case .scalar = node.content {
            return value(of: node, "audit") { text throws(BadValue) in
                guard text == "stderr" else { throw BadValue("write `stderr`, or `{file: PATH}`") }
                return .standardError
            }
        }
        return Section(node, path: "audit", pattern: "audit", diagnostics).flatMap(Self.auditFile)
    }

    private static func auditFile(_ section: Section) -> AuditSettings? {
        defer { section.finish() }
        section.need("file", saying: "audit: write `file: PATH`, or `audit: stderr`")
        return section.value("file", Grammar.path).map { .file(section.diagnostics.resolve(path: $0)) }
    }
}
