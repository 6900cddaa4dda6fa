/// A platform's metadata service, which the proxy plays for programs that ask one for tokens.
public struct MetadataSettings: Sendable, Equatable {
    public enum Kind: String, Sendable, Equatable, CaseIterable {
        /// Google's metadata server.
        case google
        /// Azure's Instance Metadata Service, or with `authorization` that of App Service.
        case azure
        /// AWS's Instance Metadata Service, version 2, or with `authorization` a container's endpoint.
        case aws

        var name: String {
            switch self {
            case .google: "Google"
            case .azure: "Azure"
            case .aws: "AWS"
            }
        }
    }

    public var kind: Kind
    /// Secret that programs send: in `Authorization` (AWS) or `X-IDENTITY-HEADER` (Azure). `nil`: none.
    public var authorization: SecretSource?
    /// Google's project, by name and number.
    public var project = "heimdallr"
    public var projectNumber = "0"
    /// Name of the service account at Google.
    public var email = "default@heimdallr.invalid"
    /// Scopes that Google's programs are told.
    public var scopes: [String] = []
    /// Resources that Azure's programs may name; empty: any.
    public var resources: [String] = []

    public init(kind: Kind) { self.kind = kind }

    /// Addresses at which programs ask without a listener of their own, with the paths there.
    static func places(_ kind: Kind, hasAuthorization: Bool) -> [(host: String, paths: [String])] {
        switch kind {
        case .google: [("metadata.google.internal", []), ("169.254.169.254", ["/computeMetadata", "/"])]
        case .azure: [("169.254.169.254", ["/metadata"])]
        case .aws:
            hasAuthorization ? [("169.254.170.2", []), ("169.254.170.23", [])] : [("169.254.169.254", ["/latest"])]
        }
    }

    /// Time before the end at which programs want another token: longer than that of any SDK.
    static func lead(_ kind: Kind) -> Duration { kind == .aws ? .seconds(960) : .seconds(330) }
}
