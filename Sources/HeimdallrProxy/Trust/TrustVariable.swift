/// An environment variable that names a program's trust anchors.
struct TrustVariable: Sendable {
    /// Kind of the file or value that the variable has.
    enum Target: Sendable {
        /// PEM: our roots and the former file's certificates, else the system's. For programs that then trust only this file.
        case bundle
        /// PEM: our roots and the former file's certificates. For programs that also trust their built-in roots.
        case addition
        /// A configuration file with a line that names a bundle. It begins with the text of the former file.
        case settings(SettingsFile)
        /// A list of folders. The last one has settings of PHP that name the bundle for libcurl.
        case phpFolders
        /// Options of Java. The last one names a JKS file that replaces `cacerts`: the system's certificates and our roots.
        case javaOptions
    }

    let name: String
    let target: Target
    /// Variables that the programs read for the same purpose. The first one with a value names the former file.
    let former: [String]
    /// Names of products in the `User-Agent` that these programs send, in lower case.
    let products: [String]

    private init(_ name: String, _ target: Target, or others: [String] = [], for products: String...) {
        self.name = name
        self.target = target
        former = [name] + others
        self.products = products
    }

    /// All variables, each tested with its programs. Some programs send no `User-Agent` with CONNECT, such as Java's HttpClient.
    static let all = [
        // Also uv, truststore and PHP's streams.
        TrustVariable(
            "SSL_CERT_FILE", .bundle,
            for: "go-http-client", "ruby", "http-tiny", "python-urllib", "python-urllib3", "python-httpx", "aiohttp",
            "uv"),
        // The command curl; not libcurl in other programs.
        TrustVariable("CURL_CA_BUNDLE", .bundle, or: ["SSL_CERT_FILE"], for: "curl"),
        TrustVariable("REQUESTS_CA_BUNDLE", .bundle, or: ["CURL_CA_BUNDLE"], for: "python-requests"),
        TrustVariable("AWS_CA_BUNDLE", .bundle, or: ["REQUESTS_CA_BUNDLE"], for: "boto3", "botocore", "aws-cli"),
        TrustVariable(
            "PIP_CERT", .bundle, or: ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"], for: "pip"),
        TrustVariable("GIT_SSL_CAINFO", .bundle, for: "git"),
        TrustVariable("CARGO_HTTP_CAINFO", .bundle, or: ["SSL_CERT_FILE"], for: "cargo"),
        TrustVariable("npm_config_cafile", .bundle, or: ["NPM_CONFIG_CAFILE"], for: "npm"),
        TrustVariable("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", .bundle, for: "grpc-httpcli"),
        // Perl's LWP. With HTTPS_CA_FILE it would compare no host names.
        TrustVariable("PERL_LWP_SSL_CA_FILE", .bundle, or: ["HTTPS_CA_FILE"], for: "libwww-perl", "lwp-request"),
        TrustVariable("NODE_EXTRA_CA_CERTS", .addition, for: "node", "node.js", "undici", "bun"),
        TrustVariable("DENO_CERT", .addition, for: "deno"),
        TrustVariable("WGETRC", .settings(.wget), for: "wget"),
        TrustVariable("WGET2RC", .settings(.wget2), for: "wget2"),
        TrustVariable("APT_CONFIG", .settings(.apt), for: "apt-http", "apt"),
        TrustVariable("PHP_INI_SCAN_DIR", .phpFolders, for: "php"),
        TrustVariable("JAVA_TOOL_OPTIONS", .javaOptions, for: "java", "apache-httpclient"),
    ]

    /// The first known product in a `User-Agent` and its variable; `nil` for an unknown program. RFC 9110, section 10.1.5.
    static func need(of userAgent: String?) -> (program: String, variable: String)? {
        for part in (userAgent ?? "").split(separator: " ") {
            let product = part.prefix { $0 != "/" }
            if let variable = all.first(where: { $0.products.contains(product.lowercased()) }) {
                return (String(product), variable.name)
            }
        }
        return nil
    }
}

/// A program's configuration file that can name a bundle.
struct SettingsFile: Sendable, Equatable {
    let name: String
    /// Files that the program reads without the variable. It uses the first that exists. Each path begins with the variable
    /// that names a folder.
    let defaultPaths: [String]
    /// The text in front of the bundle's path.
    let key: String
    /// The text around the path.
    let opening: String
    let closing: String

    /// wget's manual, "Wgetrc Location".
    static let wget = SettingsFile(
        name: "wgetrc", defaultPaths: ["HOME/.wgetrc"], key: "ca_certificate", opening: " = ", closing: "")
    /// wget2(1), "Files".
    static let wget2 = SettingsFile(
        name: "wget2rc", defaultPaths: ["XDG_CONFIG_HOME/wget/wget2rc", "HOME/.config/wget/wget2rc", "HOME/.wget2rc"],
        key: "ca-certificate", opening: " = ", closing: "")
    /// apt.conf(5), apt-transport-https(1).
    static let apt = SettingsFile(
        name: "apt.conf", defaultPaths: [], key: "Acquire::https::CaInfo", opening: " \"", closing: "\";")

    func line(naming bundle: String) -> String { "\(key)\(opening)\(bundle)\(closing)\n" }

    /// The bundle that the text names so far. The last line counts.
    func bundle(in text: String) -> String? {
        var found: String?
        for line in text.split(whereSeparator: \.isNewline) {
            let words = line.split { " \t=\";".contains($0) }
            if words.count > 1, Self.plain(words[0]) == Self.plain(key[...]) { found = String(words[1]) }
        }
        return found
    }

    /// wget takes `CA-Certificate` for `ca_certificate`. apt takes any case, and `CaInfo` alone within braces.
    private static func plain(_ key: Substring) -> String {
        (key.split(separator: "::").last ?? key).lowercased().filter { $0 != "_" && $0 != "-" }
    }
}
