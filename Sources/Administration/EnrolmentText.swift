import Heimdallr
import WireText

// State of a client of `client: auto`, for `status`, `why` and the page.
extension EnrolmentReport {
    /// Facts for people, each with a name.
    var facts: [(name: String, text: String)] {
        var facts: [(name: String, text: String)] = [("API", url)]
        if let resource, resource != url { facts.append(("resource", resource)) }
        if let issuer {
            let source = document.map { "named by \($0)" } ?? (client == nil ? nil : "kept from the sign-in")
            facts.append(("server", issuer + (source.map { ", \($0)" } ?? "")))
        }
        if let client { facts.append(("client_id", client)) }
        for (name, host) in foreignEndpoints.sorted(by: { $0.key < $1.key }) {
            facts.append(("elsewhere", "\(name) at \(host)"))
        }
        if let need { facts.append(("wanted", need)) }
        if let fault { facts.append(("fault", "\(fault)")) }
        return facts
    }

    /// The consent or sign-in that the API still wants, in words; `nil` if it wants none.
    var need: String? {
        if !missingScopes.isEmpty { return "more consent needed: \(missingScopes.joined(separator: " "))" }
        return wantsAuthentication ? "the API wants a new sign-in" : nil
    }

    var json: JSON {
        .object([
            .init("url", .string(url)), .init("resource_metadata", JSON(challenged)),
            .init("resource", JSON(resource)), .init("issuer", JSON(issuer)),
            .init("client", JSON(client)), .init("document", JSON(document)),
            .init(
                "foreign_endpoints",
                .object(foreignEndpoints.sorted { $0.key < $1.key }.map { .init($0.key, .string($0.value)) })),
            .init("missing_scopes", JSON(missingScopes)),
            .init("wants_authentication", .bool(wantsAuthentication)), .init("fault", JSON(fault?.description)),
        ])
    }
}
