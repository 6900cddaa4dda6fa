public import enum WireText.JSON

extension Configuration {
    /// A JSON Schema (draft 2020-12) of the file that `load` reads, for editors. It is what the readers ask for, written
    /// down while they run over no file at all; so it takes all that they take, and some of what they refuse: that two
    /// keys don't go together, or that a file is not there, is said by `check`.
    public static func schema() -> JSON {
        var writer = SchemaWriter(descriptions: KeyDescriptions.all)
        let root = writer.members(.section { Loader.outline($0) }, at: "")
        return .object(
            [
                .init("$schema", "https://json-schema.org/draft/2020-12/schema"),
                .init("$id", "urn:heimdallr-proxy:schema:configuration"),
                .init("title", "Configuration of heimdallr-proxy"),
            ] + root + [.init("$defs", .object(writer.definitions))])
    }
}
