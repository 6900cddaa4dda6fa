import FileSystem
import Heimdallr

// Reads `file`, a client's token file.
extension ClientReader {
    static func tokenFile(_ section: Section) -> TokenFileSettings? {
        defer { section.finish() }
        let path = section.value("path", Grammar.path)
        section.need("path", saying: "\(section.path): write `path`, the file for the token")
        var settings = TokenFileSettings(path: "")
        section.tell("mode", usually: "0600")
        settings.mode = section.value("mode", mode) ?? settings.mode
        settings.group = section.value("group", Grammar.nonempty)
        section.tell("format", usually: "plain")
        let format = section.value("format") { text throws(BadValue) in
            let names = TokenFormat.all.filter { !$0.needsQuestion }.map(\.name)
            return try Grammar.checked(
                text, names.contains(text),
                BadValue("write one of \(names.joined(separator: ", "))", fits: .words(names)))
        }
        settings.format = format ?? settings.format
        guard let path else { return nil }
        settings.path = FileSystem.absolute(section.diagnostics.resolve(path: path))
        return settings
    }

    /// Permissions of a file with a token.
    private static func mode(_ text: String) throws(BadValue) -> UInt16 {
        let mode = try Grammar.fileMode(text)
        guard mode & 0o137 == 0 else {
            throw BadValue("write \"0600\" or \"0640\": nobody else may read or write a token")
        }
        return mode
    }
}
