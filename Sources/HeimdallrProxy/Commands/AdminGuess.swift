import Administration
import FileSystem

/// Where the admin socket may be, by a file that is no good configuration any more: what stands in it behind `socket:` and
/// `listen:` after a line that begins with `admin:`, be it in braces or in lines of its own.
enum AdminGuess {
    static func sockets(file: String, environment: [String: String]) -> [String] {
        guard let bytes = try? FileSystem.read(file, limit: 1 << 20) else { return [] }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        guard let begin = lines.firstIndex(where: { $0.hasPrefix("admin:") }) else { return [] }
        let end = lines[(begin + 1)...].firstIndex { line in line.first.map { $0 != " " && $0 != "#" } ?? false }
        let section = lines[begin..<(end ?? lines.endIndex)].joined(separator: "\n")
        if let path = value(of: "socket", in: section) {
            guard !path.hasPrefix("/") else { return [path] }
            let folder = file.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
            return [folder.isEmpty ? path : "\(folder)/\(path)"]
        }
        let port = value(of: "listen", in: section)?.split(separator: ":").last.flatMap { UInt16($0) } ?? 8081
        return AdminSocket.candidates(port: port, runtimeDirectory: environment["XDG_RUNTIME_DIR"])
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
