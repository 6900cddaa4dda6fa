import Configuration
import HTTPMessage

// Other parts of a request from which a server may take method and path. The upstream's rules also apply there.
extension Overrides {
    /// - Parameter admitted: with its upstream.
    static func refuse(
        _ head: RequestHead, _ bytes: Span<UInt8>, _ rules: UpstreamRules, _ admitted: Admitted
    ) throws(Problem) {
        if !rules.settings.methods.isEmpty {
            // Frameworks accept the method from a field or a parameter, which would defeat the rule.
            if hasField(head, bytes, where: isMethod) { throw .methodOverride }
            if case .path(let path) = admitted.target, hasMethodParameter(bytes[path]) { throw .methodOverride }
        }
        guard !rules.settings.paths.isEmpty || !rules.pathPrefix.isEmpty else { return }
        if hasField(head, bytes, where: isPath) { throw .pathOverride }
        guard head.index(of: .destination) != nil, let asked = admitted.asked, let destination = admitted.destination
        else { return }
        for field in head.fields where field.known == .destination && !field.isHopByHop {
            guard rules.covers(destinationField: bytes[field.value], asked, destination) else {
                throw .destinationNotCovered
            }
        }
    }

    private static func hasField(
        _ head: RequestHead, _ bytes: Span<UInt8>, where isOverride: (Span<UInt8>) -> Bool
    ) -> Bool {
        for field in head.fields where field.known == .other && !field.isHopByHop {
            if isOverride(bytes[field.name]) { return true }
        }
        return false
    }
}
