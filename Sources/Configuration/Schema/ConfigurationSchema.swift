public import enum WireText.JSON
import enum WireText.TextTable

extension Configuration {
    /// Returns a JSON Schema (draft 2020-12) of the configuration file, for editors. The readers record it while they
    /// run without a file. It accepts all valid files and some invalid files, for example with conflicting keys. Only
    /// `check` reports such conflicts.
    public static func schema() -> JSON {
        var writer = SchemaWriter(descriptions: keyDescriptions)
        let root = writer.members(.section { Loader.outline($0) }, at: "")
        return .object(
            [
                .init("$schema", "https://json-schema.org/draft/2020-12/schema"),
                .init("$id", "urn:heimdallr-proxy:schema:configuration"),
                .init("title", "Configuration of heimdallr-proxy"),
            ] + root + [.init("$defs", .object(writer.definitions))])
    }

    /// Descriptions by the key's path (`clients.*.client_id`): the first sentence of each row in docs.
    /// `.ci/reference.py` writes `KeyDescriptions.tsv` from them, and `ReferenceTests` checks that they agree.
    private static var keyDescriptions: [String: String] {
        TextTable.rows(PackageResources.KeyDescriptions_tsv, columns: 2).reduce(into: [:]) { $0[$1[0]] = $1[1] }
    }
}
