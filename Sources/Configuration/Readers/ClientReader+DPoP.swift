/// `dpop`: RFC 9449.
extension ClientReader {
    mutating func readDPoP() {
        section.tell("dpop", .any([.value(.boolean), .section { _ = Self.readOwnKey($0) }]))
        section.tell("dpop", usually: false)
        guard let node = section.node("dpop") else { return }
        guard case .mapping = node.content else {
            let isOn = section.value(of: node, "dpop") { text throws(Misfit) in
                guard text == "true" || text == "false" else {
                    throw Misfit("write true, or {key: {file: PATH}} for a key of your own")
                }
                return text == "true"
            }
            if isOn == true { settings.dpop = .ownKey }
            return
        }
        guard let own = section.section("dpop"), let (key, algorithm) = Self.readOwnKey(own) else { return }
        settings.dpop = .key(key, algorithm: algorithm)
        own.note(.signing(key, algorithm: algorithm?.rawValue, certificate: nil), at: "key")
    }

    private static func readOwnKey(_ own: Section) -> (key: SecretSource, algorithm: ClientSettings.KeyAlgorithm?)? {
        defer { own.finish() }
        let algorithm = own.value("algorithm") { text throws(Misfit) in
            guard let algorithm = ClientSettings.KeyAlgorithm(rawValue: text) else {
                let names = ClientSettings.KeyAlgorithm.allCases.map(\.rawValue)
                throw Misfit("write one of \(names.joined(separator: ", "))", fits: .words(names))
            }
            return algorithm
        }
        let key = own.secret("key")
        own.need("key", saying: "\(own.path): write `key`, or `dpop: true` for a key that is made here")
        return key.map { ($0, algorithm) }
    }
}
