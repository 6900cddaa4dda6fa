public import enum WireText.JSON

extension Configuration {
    /// A JSON Schema (draft 2020-12) of the configuration file, for editors. It is recorded while the readers run
    /// without a file. So it accepts all valid files and some invalid ones: `check` reports conflicting keys and
    /// missing files.
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

    /// First sentences of the rows in docs/configuration.md, by the key's path: `clients.*.client_id`. `.ci/reference.py`
    /// writes the file, and `ReferenceTests` compares it.
    private static var keyDescriptions: [String: String] {
        String(decoding: PackageResources.KeyDescriptions_tsv, as: UTF8.self).split(separator: "\n")
            .reduce(into: [:]) { all, line in
                let parts = line.split(separator: "\t", maxSplits: 1)
                if parts.count == 2 { all[String(parts[0])] = String(parts[1]) }
            }
    }
}
