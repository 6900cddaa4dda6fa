/// What a later version brings: "Not supported yet" in docs/configuration.md. Writing it is an error until then, never
/// silently accepted.
/// When a feature arrives, its lines here go. Keys are `section.key` or, for one value of a key, `section.key=value`;
/// values say what to do meanwhile.
enum NotSupportedYet {
    private static let table: [String: String] = [
        "clients.*.token_endpoint_auth_method=client_secret_jwt": supportedMethods,
        "clients.*.token_endpoint_auth_method=private_key_jwt": supportedMethods,
        "clients.*.token_endpoint_auth_method=tls_client_auth": supportedMethods,
        "clients.*.token_endpoint_auth_method=self_signed_tls_client_auth": supportedMethods,
    ]

    private static let supportedMethods = "write client_secret_basic, client_secret_post or none"

    /// What to do instead, when `key` (or `key=value`) is not supported yet.
    static func advice(for key: String) -> String? { table[key] }
}
