/// Filter for the `scope` of an answer. The scope is shown to people later, so a hostile value must do no harm.
enum GrantedScope {
    /// Largest number of kept names that were not requested. Names granted before count, so refreshes don't add up.
    static let maxCount = 64
    static let maxBytes = 128

    /// Returns each name once. Omits names that are too long, too many, secret, or no scope-token (RFC 6749 section
    /// 3.3). Always keeps requested names.
    /// - Parameters:
    ///   - names: each entry may hold several names, separated by spaces or, at some servers, by commas.
    ///   - granted: names that an earlier answer granted.
    static func keep(
        _ names: [String], askedFor: [String], granted: [String] = [], hiding secrets: [Secret]
    ) -> [String] {
        let requested = Set(askedFor.flatMap { $0.split(separator: " ") })
        let known = requested.union(granted.map { $0[...] })
        var seen: Set<Substring> = []
        var kept: [Substring] = []
        var foreign: [Substring] = []
        for name in names.lazy.flatMap({ parts(of: $0, known) }) where !seen.contains(name) {
            if !requested.contains(name) {
                guard foreign.count < maxCount, isToken(name) else { continue }
                foreign.append(name)
            }
            seen.insert(name)
            kept.append(name)
        }
        let harmless = harmless(foreign, secrets)
        return kept.filter { requested.contains($0) || harmless.contains($0) }.map(String.init)
    }

    /// Returns the scope of a refresh: the granted names, or else the requested ones (RFC 6749 section 6). Adds names of
    /// OpenID Connect that were requested and that servers may grant without naming them.
    static func again(_ granted: [String], askedFor: [String], silent: Set<String>) -> [String] {
        guard !granted.isEmpty else { return askedFor }
        let names = askedFor.flatMap { $0.split(separator: " ").map(String.init) }
        return granted + names.filter { silent.contains($0) && !granted.contains($0) }
    }

    /// Splits a list at spaces, and at commas unless the name with its commas was requested.
    private static func parts(of list: String, _ known: Set<Substring>) -> [Substring] {
        list.split(separator: " ").flatMap { known.contains($0) ? [$0] : $0.split(separator: ",") }
    }

    /// Returns the requested names that were not granted. A requested list with commas counts as its names.
    static func missing(from granted: [String], wanted: [String]) -> [String] {
        let names = granted.flatMap { [$0] + $0.split(separator: ",").map(String.init) }
        let known = Set(names.flatMap { [$0, short($0)] })
        func isGranted(_ name: String) -> Bool {
            known.contains(name) || name.hasSuffix("/.default") && !names.isEmpty
                || name.contains("://") && names.contains(short(name))
        }
        return wanted.flatMap { $0.split(separator: " ").map(String.init) }.filter { name in
            !isGranted(name) && !name.split(separator: ",").allSatisfy { isGranted(String($0)) }
        }
    }

    /// Returns the last part of a name that is a URL. Servers answer a short name by its URL, or a URL by its short name:
    /// `User.Read` and `https://graph.microsoft.com/User.Read` (Entra ID). Google answers `email` by
    /// `https://www.googleapis.com/auth/userinfo.email`. For a name that ends in `/.default` (Entra ID), the answer lists
    /// the permissions.
    private static func short(_ name: String) -> String {
        guard name.contains("://"), let slash = name.lastIndex(of: "/") else { return name }
        let last = name[name.index(after: slash)...]
        return String(last.hasPrefix("userinfo.") ? last.dropFirst("userinfo.".count) : last)
    }

    /// 0x21, 0x23–0x5B, 0x5D–0x7E.
    private static func isToken(_ name: Substring) -> Bool {
        name.utf8.count <= maxBytes
            && name.utf8.allSatisfy {
                (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\")
            }
    }

    /// Returns the names that contain no secret. Searches the names as one text: a secret may contain a space.
    private static func harmless(_ names: [Substring], _ secrets: [Secret]) -> Set<Substring> {
        guard !names.isEmpty else { return [] }
        // A byte that no scope-token contains.
        let mark = UInt8(ascii: "\\")
        let text = SecretSpelling.replacing(
            secrets, in: Array(names.joined(separator: " ").utf8), by: [mark], enough: .max)
        return Set(String(decoding: text, as: UTF8.self).split(separator: " ").filter { !$0.utf8.contains(mark) })
    }
}
