import Configuration
import HTTPMessage

// What a request says beside its method and target, and a server may take for them: the rules of its upstream hold for
// that, too.
extension Overrides {
    /// - Parameter admitted: its upstream is chosen.
    static func refuse(
        _ head: RequestHead, _ bytes: Span<UInt8>, _ rules: UpstreamRules, _ admitted: Admitted
    ) throws(Problem) {
        if !rules.settings.methods.isEmpty {
            // Frameworks take the method from a field or a parameter instead, and the rule would be one on paper.
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
