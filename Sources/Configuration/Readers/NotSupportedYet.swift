/// What a later version brings: "Not supported yet" in docs/configuration.md. Writing it is an error until then, never
/// silently accepted.
/// When a feature arrives, its lines here go. Keys are `section.key` or, for one value of a key, `section.key=value`;
/// values say what to do meanwhile.
enum NotSupportedYet {
    private static let table: [String: String] = [:]

    /// What to do instead, when `key` (or `key=value`) is not supported yet.
    static func advice(for key: String) -> String? { table[key] }
}
