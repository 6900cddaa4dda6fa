import Heimdallr

// Reads `dpop` (RFC 9449).
extension ClientReader {
    mutating func readDPoP() {
        let found: ClientSettings.DPoP? = section.either("dpop") { text throws(BadValue) in
            switch text {
            case "true": .ownKey
            case "false": .off
            default: throw BadValue("write true, or {key: {file: PATH}} for a key of your own", fits: .boolean)
            }
        } or: {
            Self.readKey($0)
        }
        section.tell("dpop", usually: false)
        if let found { settings.dpop = found }
    }

    private static func readKey(_ section: Section) -> ClientSettings.DPoP? {
        defer { section.finish() }
        let algorithm = section.value("algorithm") { text throws(BadValue) in
            guard let algorithm = JWTAlgorithm(rawValue: text) else {
                let names = JWTAlgorithm.allCases.map(\.rawValue)
                throw BadValue("write one of \(names.joined(separator: ", "))", fits: .words(names))
            }
            return algorithm
        }
        let key = section.secret("key")
        section.need("key", saying: "\(section.path): write `key`, or `dpop: true` for a key that the proxy makes")
        guard let key else { return nil }
        section.note(.signing(key, algorithm: algorithm?.rawValue, certificate: nil), at: "key")
        return .key(key, algorithm: algorithm)
    }
}
