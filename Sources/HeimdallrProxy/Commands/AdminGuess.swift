import Administration
import FileSystem

/// Guesses the admin socket from an invalid configuration file: reads the values of `socket:` and `listen:` after the line
/// `admin:`, in braces or on separate lines.
enum AdminGuess {
    static func sockets(file: String, environment: [String: String]) -> [String] {
        guard let section = section(file) else { return [] }
        if let path = value(of: "socket", in: section) {
            guard !path.hasPrefix("/") else { return [path] }
            let folder = file.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
            return [folder.isEmpty ? path : "\(folder)/\(path)"]
        }
        return AdminSocket.candidates(port: port(section), runtimeDirectory: environment["XDG_RUNTIME_DIR"])
    }

    /// The admin port; `nil` without an admin section.
    static func port(file: String) -> UInt16? { section(file).map(port) }

    private static func port(_ section: String) -> UInt16 {
        value(of: "listen", in: section)?.split(separator: ":").last.flatMap { UInt16($0) } ?? 8081
    }

    private static func section(_ file: String) -> String? {
        guard let bytes = try? FileSystem.read(file, limit: 1 << 20) else { return nil }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        guard let begin = lines.firstIndex(where: { $0.hasPrefix("admin:") }) else { return nil }
        let end = lines[(begin + 1)...].firstIndex { line in line.first.map { $0 != " " && $0 != "#" } ?? false }
        return lines[begin..<(end ?? lines.endIndex)].joined(separator: "\n")
    }

    private static func value(of key: String, in section: String) -> String? {
        guard let mark = section.firstRange(of: "\(key):") else { return nil }
        let rest = section[mark.upperBound...].drop { $0 == " " }
        if let quote = rest.first, quote == "\"" || quote == "'" {
            return String(rest.dropFirst().prefix { $0 != quote && $0 != "\n" })
        }
        let value = rest.prefix { !",}\n #".contains($0) }
        return value.isEmpty || value.contains("$") ? nil : String(value)
    }
}
