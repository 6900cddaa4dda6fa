import Configuration
import Heimdallr
import WireText

/// What a program asks of a metadata service, and the answer where no token is needed. Pure.
enum MetadataQuestion: Equatable {
    /// A text that the configuration knows.
    case known(OwnAnswer)
    /// A token, in the form of this name.
    case token(form: String)
    case refused(MetadataRefusal)
}

/// Why a metadata service gives no token.
struct MetadataRefusal: Error, Equatable {
    var status: Int
    /// A word for programs, as in `error` of Azure and `code` of AWS.
    var code: String
    var sentence: String
}

/// An answer that the proxy makes itself.
struct OwnAnswer: Equatable {
    var status = 200
    var type = "application/json"
    var body: [UInt8] = []
    /// Further fields, whole lines.
    var fields = ""
}

/// The parts of a request that a metadata service looks at.
struct MetadataRequest {
    var method: String
    /// Path, without the query, percent-decoded.
    var path: String
    /// Parameters of the query; the first of each name.
    var parameters: [String: String] = [:]
    /// Values of a field, by its name in lower case.
    var fields: [String: [String]] = [:]

    func field(_ name: String) -> String? { fields[name]?.count == 1 ? fields[name]?.first : nil }
}

extension MetadataQuestion {
    /// - Parameters:
    ///   - hasSecret: whether a text is the service's `authorization`.
    ///   - session: the value that AWS's programs fetch before they ask.
    init(_ request: MetadataRequest, _ settings: MetadataSettings, session: String, hasSecret: (String) -> Bool) {
        // A page in a browser, and a server that forwards others' requests, must not get at a token.
        let foreign = ["origin", "sec-fetch-site", "x-forwarded-for", "forwarded"].first { request.fields[$0] != nil }
        if let foreign {
            self = .refused(
                .init(status: 403, code: "forbidden", sentence: "requests with \(foreign) get no token here"))
        } else if request.fields["user-agent"]?.contains(where: { $0.lowercased().contains("gecko") }) == true {
            self = .refused(.init(status: 403, code: "forbidden", sentence: "browsers get no token here"))
        } else {
            switch settings.kind {
            case .google: self = Self.google(request, settings)
            case .azure: self = Self.azure(request, settings, hasSecret)
            case .aws: self = Self.aws(request, settings, session, hasSecret)
            }
        }
    }

    // MARK: Google

    /// https://cloud.google.com/compute/docs/metadata
    private static func google(_ request: MetadataRequest, _ settings: MetadataSettings) -> Self {
        guard request.method == "GET" else { return wrongMethod }
        guard request.field("metadata-flavor")?.lowercased() == "google" else {
            return .refused(
                .init(status: 403, code: "forbidden", sentence: "Missing Metadata-Flavor:Google header."))
        }
        func text(_ text: String) -> Self { .known(.init(type: "application/text", body: Array(text.utf8))) }
        let base = "/computeMetadata/v1/"
        guard request.path.hasPrefix(base) else {
            return ["/", "/computeMetadata", "/computeMetadata/", "/computeMetadata/v1"].contains(request.path)
                ? text("computeMetadata/\n") : unknown
        }
        let place = request.path.dropFirst(base.count).split(separator: "/")
        switch place {
        case []: return text("instance/\nproject/\n")
        case ["project", "project-id"]: return text(settings.project)
        case ["project", "numeric-project-id"]: return text(settings.projectNumber)
        case ["universe", "universe-domain"], ["universe", "universe_domain"]: return text("googleapis.com")
        case ["instance", "service-accounts"]: return text("default/\n\(settings.email)/\n")
        default: break
        }
        guard place.count >= 3, place[..<2] == ["instance", "service-accounts"],
            place[2] == "default" || place[2] == settings.email
        else { return unknown }
        switch place.dropFirst(3) {
        case [] where request.parameters["recursive"] == "true":
            return .known(
                json([
                    .init("aliases", .array([.string("default")])), .init("email", .string(settings.email)),
                    .init("scopes", .array(settings.scopes.map { .string($0) })),
                ]))
        case []: return text("aliases\nemail\nscopes\ntoken\n")
        case ["aliases"]: return text("default\n")
        case ["email"]: return text(settings.email)
        case ["scopes"]: return text(settings.scopes.map { $0 + "\n" }.joined())
        case ["token"]: return .token(form: "google")
        case ["identity"]:
            return .refused(
                .init(status: 404, code: "not_found", sentence: "no id tokens are given here, access tokens only"))
        default: return unknown
        }
    }

    // MARK: Azure

    /// https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token and, with a
    /// secret, https://learn.microsoft.com/azure/app-service/overview-managed-identity
    private static func azure(
        _ request: MetadataRequest, _ settings: MetadataSettings, _ hasSecret: (String) -> Bool
    ) -> Self {
        guard request.method == "GET" else { return wrongMethod }
        if settings.authorization != nil {
            guard let secret = request.field("x-identity-header"), hasSecret(secret) else {
                return .refused(
                    .init(status: 401, code: "unauthorized", sentence: "X-IDENTITY-HEADER is missing or wrong"))
            }
        } else {
            guard request.path.lowercased() == "/metadata/identity/oauth2/token" else { return unknown }
            guard request.field("metadata")?.lowercased() == "true" else {
                return .refused(
                    .init(status: 400, code: "bad_request_102", sentence: "Required metadata header not specified"))
            }
        }
        guard let resource = request.parameters["resource"], !resource.isEmpty else {
            return .refused(
                .init(status: 400, code: "invalid_request", sentence: "the parameter `resource` is missing"))
        }
        guard settings.resources.isEmpty || settings.resources.contains(where: { trimmed($0) == trimmed(resource) })
        else {
            return .refused(
                .init(
                    status: 400, code: "invalid_resource",
                    sentence: "the token is for other resources: compare `metadata.resources` of the proxy"))
        }
        return .token(form: "azure")
    }

    private static func trimmed(_ resource: String) -> Substring {
        resource.hasSuffix("/") ? resource.dropLast() : resource[...]
    }

    // MARK: AWS

    /// Name of the role, as programs are told.
    private static let role = "heimdallr"

    /// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-metadata-security-credentials.html and, with a secret,
    /// https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html
    private static func aws(
        _ request: MetadataRequest, _ settings: MetadataSettings, _ session: String, _ hasSecret: (String) -> Bool
    ) -> Self {
        if settings.authorization != nil {
            guard request.method == "GET" else { return wrongMethod }
            guard let secret = request.field("authorization"), hasSecret(secret) else {
                return .refused(.init(status: 401, code: "Unauthorized", sentence: "Authorization is missing or wrong"))
            }
            return .token(form: "aws-container")
        }
        if request.path == "/latest/api/token" {
            guard request.method == "PUT" else { return wrongMethod }
            guard let seconds = request.field("x-aws-ec2-metadata-token-ttl-seconds") else {
                return .refused(
                    .init(status: 400, code: "BadRequest", sentence: "X-aws-ec2-metadata-token-ttl-seconds is missing"))
            }
            let field = "X-aws-ec2-metadata-token-ttl-seconds: \(min(Int(seconds) ?? 60, 21_600))\r\n"
            return .known(.init(type: "text/plain", body: Array(session.utf8), fields: field))
        }
        guard request.method == "GET" else { return wrongMethod }
        guard !session.isEmpty, request.field("x-aws-ec2-metadata-token") == session else {
            return .refused(.init(status: 401, code: "Unauthorized", sentence: "ask PUT /latest/api/token first"))
        }
        switch request.path {
        case "/latest/meta-data/iam/security-credentials", "/latest/meta-data/iam/security-credentials/":
            return .known(.init(type: "text/plain", body: Array(role.utf8)))
        case "/latest/meta-data/iam/security-credentials/\(role)": return .token(form: "aws-instance")
        default: return unknown
        }
    }

    // MARK: Common answers

    private static let unknown = refused(
        .init(
            status: 404, code: "not_found", sentence: "the proxy plays only the parts of this service that give tokens")
    )
    private static let wrongMethod = refused(
        .init(status: 405, code: "method_not_allowed", sentence: "this method is not answered here"))

    static func json(_ members: [JSON.Member], status: Int = 200) -> OwnAnswer {
        var answer = OwnAnswer(status: status)
        JSON.object(members).write(.compact, escaping: .required) { answer.body.append($0) }
        return answer
    }
}

extension OwnAnswer {
    /// The answer of a metadata service to a request that gets no token, with the words where its programs show them.
    init(_ refusal: MetadataRefusal, of kind: MetadataSettings.Kind) {
        switch kind {
        case .google:
            self.init(status: refusal.status, type: "text/plain", body: Array((refusal.sentence + "\n").utf8))
        case .azure:
            self = MetadataQuestion.json(
                [
                    .init("error", .string(refusal.code)), .init("error_description", .string(refusal.sentence)),
                    .init("message", .string(refusal.sentence)),
                ], status: refusal.status)
        case .aws:
            self = MetadataQuestion.json(
                [.init("code", .string(refusal.code)), .init("message", .string(refusal.sentence))],
                status: refusal.status)
        }
        marked(as: kind)
    }

    /// Adds what programs know the service by.
    mutating func marked(as kind: MetadataSettings.Kind) {
        if kind == .google { fields += "Metadata-Flavor: Google\r\nServer: Metadata Server for VM\r\n" }
    }
}
