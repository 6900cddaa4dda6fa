/// `dpop`: RFC 9449.
extension ClientReader {
    mutating func readDPoP() {
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
        guard let own = section.section("dpop") else { return }
        defer { own.finish() }
        let algorithm = own.value("algorithm") { text throws(Misfit) in
            guard let algorithm = ClientSettings.KeyAlgorithm(rawValue: text) else {
                let names = ClientSettings.KeyAlgorithm.allCases.map(\.rawValue)
                throw Misfit("write one of \(names.joined(separator: ", "))")
            }
            return algorithm
        }
        guard own.has("key") else {
            section.diagnostics.error(
                own.position, "\(own.path): write `key`, or `dpop: true` for a key that is made here")
            return
        }
        if let key = own.secret("key") {
            settings.dpop = .key(key, algorithm: algorithm)
            own.note(.signing(key, algorithm: algorithm?.rawValue, certificate: nil), at: "key")
        }
    }
}
