/// Files that every page loads, from this folder. Pages load nothing from other servers.
enum PageAssets {
    /// `/page.css`.
    static let style = String(decoding: PackageResources.PageStyle_css, as: UTF8.self)
    /// `/page.js`: updates the page. Without the script, people can still read the page and sign in. Only the implicit
    /// grant requires the script, because only a script can read the fragment.
    static let script = String(decoding: PackageResources.PageScript_js, as: UTF8.self)
    /// `/icon.svg`.
    static let icon = String(decoding: PackageResources.PageIcon_svg, as: UTF8.self)
}
