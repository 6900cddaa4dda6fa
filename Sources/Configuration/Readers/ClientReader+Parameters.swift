import Heimdallr
import WireText

// Reads `params`: further parameters of all requests, and of single steps.
extension ClientReader {
    /// Parameters that have a separate key beside `params`. Those of the first list may differ by step.
    private static let ownParams = (
        steps: ["scope", "resource", "audience", "authorization_details"], never: ["refresh_token"]
    )

    /// Parameters that the API's documents decide with `client: auto`.
    private static let ofDocuments = ["scope", "resource"]

    private enum Entry {
        case all(String)
        case step(RequestStep, [FormParameter])
    }

    mutating func readParams() {
        let never = Self.ownParams.never + (settings.grantType == .tokenExchange ? Self.exchangeKeys : [])
        let own = Self.ownParams.steps + never
        let step = Shape.names(
            ValueKind { text throws(BadValue) in try parameterName(text, never) },
            .oneOrMore(.value(of: Grammar.any)))
        let entries = section.mapping(
            "params", to: nil, .any([.value(of: Grammar.any), step]),
            name: { text throws(BadValue) in try parameterName(text, own) },
            value: { entry, inner in self.entry(entry, inner, never) })
        for (name, entry) in entries {
            switch entry {
            case .all(let text): settings.parameters.append(FormParameter(name, text))
            case .step(let step, let pairs): settings.stepParameters[step] = pairs
            }
        }
    }

    /// Reads a parameter of all requests, or the mapping of a step's parameters.
    private func entry(_ entry: Node.Entry, _ section: Section, _ never: [String]) -> Entry? {
        guard case .mapping = entry.value.content else {
            return section.value(of: entry.value, entry.key, Grammar.any).map { .all($0) }
        }
        guard let step = RequestStep(rawValue: entry.key) else {
            let steps = RequestStep.allCases.map(\.rawValue).joined(separator: ", ")
            section.error(entry.value, entry.key, "write a single value; only the steps \(steps) have a mapping")
            return nil
        }
        // A person sees these before a sign-in of `client: auto`, so they can't differ from the documents. For a known
        // server that refuses `resource`, it can be left out (Entra ID).
        let isShown = isAuto && [.signIn, .token].contains(step)
        let fixed = !isShown ? [] : self.section.has("issuer") ? ["scope"] : Self.ofDocuments
        let groups = section.mapping(
            entry.key, to: nil, .anything, name: { text throws(BadValue) in try parameterName(text, never + fixed) }
        ) { inner, section in
            let texts = inner.value.elements.compactMap { section.value(of: $0, inner.key, Grammar.any) }
            return inner.key == "scope" ? [texts.joined(separator: " ")] : texts
        }
        if isShown, groups.contains(where: { $0.name == "resource" && $0.value.contains { !$0.isEmpty } }) {
            section.error(
                entry.value, entry.key, "\"resource\" comes from the API's documents: an empty one leaves it out")
        }
        return .step(step, groups.flatMap { group in group.value.map { FormParameter(group.name, $0) } })
    }

    private func parameterName(_ text: String, _ ownParams: [String]) throws(BadValue) -> String {
        if isAuto, ownParams.contains(text), Self.ofDocuments.contains(text) {
            throw BadValue(
                "\"\(text)\" comes from the API's documents; `allow_scopes` limits the scopes", quotes: false)
        }
        if ownParams.contains(text) {
            throw BadValue("\"\(text)\" has a separate key: write `\(text):` beside `params`", quotes: false)
        }
        if HeimdallrConfiguration.reservedParameters.contains(text) {
            throw BadValue("\"\(text)\" is set by the grant itself and can't be an extra parameter", quotes: false)
        }
        return try Grammar.nonempty(text)
    }
}
