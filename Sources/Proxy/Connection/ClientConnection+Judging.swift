import Configuration
import HTTPMessage
import Reactor

// What a request says beside its method and target, and a server may take for them: the rules of its upstream hold for
// that, too.
extension ClientConnection {
    /// How the upstream's addresses look to the program; `nil`: as they are.
    var addressMap: AddressMap? {
        guard let upstream, let asked, let destination else { return nil }
        return upstream.addressMap(asked, destination)
    }

    /// The upstream is chosen.
    func judge() throws(Problem) {
        guard let upstream else { return }
        if !upstream.settings.methods.isEmpty { try refuseMethodOverride() }
        if !upstream.settings.paths.isEmpty || !upstream.pathPrefix.isEmpty {
            try refusePathOverride()
            if head.index(of: .destination) != nil { try judgeDestination(upstream) }
        }
    }

    /// Frameworks take the method from a field or a parameter instead, and the rule would be one on paper.
    private func refuseMethodOverride() throws(Problem) {
        if hasField(where: Overrides.isMethod) { throw .methodOverride }
        guard case .path(let path) = target else { return }
        if headBytes.withBytes({ Overrides.hasMethodParameter($0[path]) }) { throw .methodOverride }
    }

    /// The same for the path.
    private func refusePathOverride() throws(Problem) {
        if hasField(where: Overrides.isPath) { throw .pathOverride }
    }

    private func hasField(where isOverride: (Span<UInt8>) -> Bool) -> Bool {
        headBytes.withBytes { bytes in
            for field in head.fields where field.known == .other && !field.isHopByHop {
                if isOverride(bytes[field.name]) { return true }
            }
            return false
        }
    }

    /// COPY and MOVE write to the place that Destination names (RFC 4918, section 10.3).
    private func judgeDestination(_ upstream: Upstream) throws(Problem) {
        guard let asked, let destination else { return }
        let map = AddressMap(
            asked: asked, destination: destination, host: upstream.host, prefix: upstream.pathPrefix,
            keepsHost: upstream.settings.keepsHost)
        try headBytes.withBytes { bytes throws(Problem) in
            for field in head.fields where field.known == .destination && !field.isHopByHop {
                guard
                    map.covers(
                        destination: bytes[field.value], paths: upstream.settings.paths,
                        isRewritten: upstream.settings.rewrite)
                else { throw .destinationNotCovered }
            }
        }
    }
}
