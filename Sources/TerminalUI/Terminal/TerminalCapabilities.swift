/// What a terminal can do, as far as its environment says.
package struct TerminalCapabilities: Hashable, Sendable {
  /// How many colours it has, and the user wants.
  package var colors: ColorDepth
  /// Whether it accepts marks of where a frame begins and ends, so that it never shows half a frame.
  package var synchronizesOutput: Bool

  package init(colors: ColorDepth, synchronizesOutput: Bool) {
    self.colors = colors
    self.synchronizesOutput = synchronizesOutput
  }

  /// Reads `TERM`, `COLORTERM` and `NO_COLOR`; nil where the cursor cannot be placed, so that only lines can be printed.
  package init?(environment: [String: String]) {
    let type = environment["TERM"] ?? ""
    guard !["", "dumb", "unknown", "network"].contains(type) else { return nil }
    colors =
      if !(environment["NO_COLOR"] ?? "").isEmpty {
        .none
      } else if ["truecolor", "24bit"].contains(environment["COLORTERM"]) || type.hasSuffix("-direct") {
        .direct
      } else if type.hasSuffix("-256color") || ["alacritty", "foot", "wezterm"].contains(type) {
        .indexed
      } else if type.hasPrefix("vt") || type.hasSuffix("-mono") || type.hasSuffix("-m") {
        .none
      } else {
        .basic
      }
    // Terminals that do not know the mode ignore it. These are too old, or too simple, to rely on that.
    synchronizesOutput = !type.hasPrefix("vt") && !["linux", "ansi", "cons25", "sun"].contains(type)
  }
}
