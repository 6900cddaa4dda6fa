// Rules about intercepted TLS.
extension Loader {
    func checkInterception(_ section: Section) {
        let intercepted = upstreams.filter(\.settings.intercepts)
        if let permitted = configuration.interception?.permit, !permitted.isEmpty, intercepted.isEmpty {
            section.warn("interception", "`permit` has no effect without an upstream with `intercept: true`")
        }
        for (index, upstream) in intercepted.enumerated() {
            guard
                let earlier = intercepted[..<index].first(where: {
                    $0.settings.host == upstream.settings.host
                        && $0.settings.serverCertificate != upstream.settings.serverCertificate
                })
            else { continue }
            diagnostics.error(
                upstream.position,
                "\(upstream.path): the upstream in \(earlier.position.inWords) is for \(upstream.settings.host), too, and a "
                    + "host has one certificate: write the same `tls.server_cert_file` in both")
        }
    }
}
