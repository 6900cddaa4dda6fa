internal import WireText

/// One parameter in a URL's query; everything else stays byte for byte.
enum QueryParameter {
    static func set(_ name: String, to value: Secret, in url: String) -> String {
        var rest = url[...]
        var fragment = ""[...]
        if let hash = rest.firstIndex(of: "#") {
            fragment = rest[hash...]
            rest = rest[..<hash]
        }
        let encodedName = PercentEncoding.uri.encode(name)
        let encodedValue = PercentEncoding.uri.encode(value.revealedBytes)
        let pair = "\(encodedName)=\(encodedValue)"
        guard let mark = rest.firstIndex(of: "?") else { return "\(rest)?\(pair)\(fragment)" }
        var kept = rest[rest.index(after: mark)...].split(separator: "&", omittingEmptySubsequences: false)
            .filter { $0.prefix { $0 != "=" } != encodedName && $0.prefix { $0 != "=" } != name }
        if kept == [""] { kept = [] }
        return "\(rest[..<mark])?\((kept + [pair[...]]).joined(separator: "&"))\(fragment)"
    }
}
