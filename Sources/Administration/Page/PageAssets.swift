/// Files of every page, from this folder. Nothing is fetched from elsewhere.
enum PageAssets {
    /// `/page.css`.
    static let style = String(decoding: PackageResources.PageStyle_css, as: UTF8.self)
    /// `/page.js`: updates the page. Without it people can read the page and sign in, except by the implicit grant, whose
    /// fragment only a script sees.
    static let script = String(decoding: PackageResources.PageScript_js, as: UTF8.self)
    /// `/icon.svg`.
    static let icon = String(decoding: PackageResources.PageIcon_svg, as: UTF8.self)
}
