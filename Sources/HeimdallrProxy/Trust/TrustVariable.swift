/// An environment variable that names a program's trust anchors. The former file is its value before `exec`.
struct TrustVariable: Sendable {
    enum Target: Sendable {
        /// A PEM file with our roots, and those of the former file or, without it, of the system. For programs that
        /// trust only this file.
        case bundle
        /// A PEM file with our roots and those of the former file. For programs that also trust their built-in roots.
        case addition
        /// A configuration file: the text of the former file, then a line that names a bundle.
        case settings(SettingsFile)
        /// A list of folders. The last folder has PHP settings that name the bundle for libcurl.
        case phpFolders
        /// Java options. The last option replaces `cacerts` by a JKS file with the system's certificates and our roots.
        case javaOptions
    }

    let name: String
    let target: Target
    /// Variables that the programs read for the same purpose. The first variable with a value names the former file.
    let former: [String]
    /// Names of products in the `User-Agent` that these programs send, in lower case.
    let products: [String]

    private init(_ name: String, _ target: Target, or others: [String] = [], for products: String...) {
        self.name = name
        self.target = target
        former = [name] + others
        self.products = products
    }

    /// All variables. `need` can't help programs that send no `User-Agent` with CONNECT, such as Java's HttpClient.
    static let all = [
        // uv, truststore and PHP's streams read this variable, too.
        TrustVariable(
            "SSL_CERT_FILE", .bundle,
            for: "go-http-client", "ruby", "http-tiny", "python-urllib", "python-urllib3", "python-httpx", "aiohttp",
            "uv"),
        // The curl command only, not libcurl in other programs.
        TrustVariable("CURL_CA_BUNDLE", .bundle, or: ["SSL_CERT_FILE"], for: "curl"),
        TrustVariable("REQUESTS_CA_BUNDLE", .bundle, or: ["CURL_CA_BUNDLE"], for: "python-requests"),
        TrustVariable("AWS_CA_BUNDLE", .bundle, or: ["REQUESTS_CA_BUNDLE"], for: "boto3", "botocore", "aws-cli"),
        TrustVariable(
            "PIP_CERT", .bundle, or: ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"], for: "pip"),
        TrustVariable("HTTPLIB2_CA_CERTS", .bundle, for: "python-httplib2"),
        TrustVariable("CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", .bundle, for: "google-cloud-sdk", "gcloud"),
        // OpenSSL and curl of nixpkgs.
        TrustVariable("NIX_SSL_CERT_FILE", .bundle, or: ["SSL_CERT_FILE"], for: "nix"),
        TrustVariable("GIT_SSL_CAINFO", .bundle, for: "git"),
        TrustVariable("CARGO_HTTP_CAINFO", .bundle, or: ["SSL_CERT_FILE"], for: "cargo"),
        TrustVariable("npm_config_cafile", .bundle, or: ["NPM_CONFIG_CAFILE"], for: "npm"),
        TrustVariable("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", .bundle, for: "grpc-httpcli"),
        // Perl's LWP. With HTTPS_CA_FILE, LWP would not check host names.
        TrustVariable("PERL_LWP_SSL_CA_FILE", .bundle, or: ["HTTPS_CA_FILE"], for: "libwww-perl", "lwp-request"),
        TrustVariable("NODE_EXTRA_CA_CERTS", .addition, for: "node", "node.js", "undici", "bun"),
        TrustVariable("DENO_CERT", .addition, for: "deno"),
        TrustVariable("WGETRC", .settings(.wget), for: "wget"),
        TrustVariable("WGET2RC", .settings(.wget2), for: "wget2"),
        TrustVariable("APT_CONFIG", .settings(.apt), for: "apt-http", "apt"),
        TrustVariable("PHP_INI_SCAN_DIR", .phpFolders, for: "php"),
        TrustVariable("JAVA_TOOL_OPTIONS", .javaOptions, for: "java", "apache-httpclient"),
    ]

    /// Returns the first known product in a `User-Agent` and its variable; `nil` if none. RFC 9110, section 10.1.5.
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
    /// Files that the program reads if the variable is not set. The first existing file counts. Each path begins with
    /// the name of a variable for a folder.
    let defaultPaths: [String]
    /// Name of the setting for the bundle's path.
    let key: String
    /// Text between the key and the path. `closing` is the text after the path.
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

    /// Returns the bundle that the text names: in the last line with `key`, if there are several.
    func bundle(in text: String) -> String? {
        var found: String?
        for line in text.split(whereSeparator: \.isNewline) {
            let words = line.split { " \t=\";".contains($0) }
            if words.count > 1, Self.plain(words[0]) == Self.plain(key[...]) { found = String(words[1]) }
        }
        return found
    }

    /// Normalizes a key. wget takes `CA-Certificate` for `ca_certificate`. apt takes any case, and `CaInfo` in braces.
    private static func plain(_ key: Substring) -> String {
        (key.split(separator: "::").last ?? key).lowercased().filter { $0 != "_" && $0 != "-" }
    }
}
