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
            Self.readOwnKey($0)
        }
        section.tell("dpop", usually: false)
        if let found { settings.dpop = found }
    }

    private static func readOwnKey(_ own: Section) -> ClientSettings.DPoP? {
        defer { own.finish() }
        let algorithm = own.value("algorithm") { text throws(BadValue) in
            guard let algorithm = ClientSettings.KeyAlgorithm(rawValue: text) else {
                let names = ClientSettings.KeyAlgorithm.allCases.map(\.rawValue)
                throw BadValue("write one of \(names.joined(separator: ", "))", fits: .words(names))
            }
            return algorithm
        }
        let key = own.secret("key")
        own.need("key", saying: "\(own.path): write `key`, or `dpop: true` for a key that the proxy makes")
        guard let key else { return nil }
        own.note(.signing(key, algorithm: algorithm?.rawValue, certificate: nil), at: "key")
        return .key(key, algorithm: algorithm)
    }
}
