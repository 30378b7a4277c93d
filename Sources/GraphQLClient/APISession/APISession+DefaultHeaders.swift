internal import Foundation

extension APISession {
  /// Returns the headers that describe the program and its platform.
  ///
  /// Every request carries them unless the caller replaces them.
  ///
  /// - `x-app-platform`: The operating system, in lowercase (`ios`, `linux`, …).
  /// - `x-app-version`: The version of the program.
  /// - `x-os-version`: The version of the operating system, as `major.minor.patch`.
  ///
  /// - Parameter appVersion: The version of the program. The default, `nil`, stands for the main bundle's short
  ///   version, or for `unknown` if there is none, as in a command-line program.
  /// - Returns: The three headers.
  public static func defaultHeaders(appVersion: String? = nil) -> [String: String] {
    [
      "x-app-platform": platform, "x-app-version": appVersion ?? bundleVersion ?? "unknown",
      "x-os-version": systemVersion,
    ]
  }

  private static let bundleVersion = Bundle.main.object(forInfoDictionaryKey: "CFBundleShortVersionString") as? String

  private static let systemVersion: String = {
    let version = ProcessInfo.processInfo.operatingSystemVersion
    return "\(version.majorVersion).\(version.minorVersion).\(version.patchVersion)"
  }()

  private static var platform: String {
    #if os(macOS)
      "macos"
    #elseif os(iOS)
      "ios"
    #elseif os(tvOS)
      "tvos"
    #elseif os(watchOS)
      "watchos"
    #elseif os(visionOS)
      "visionos"
    #elseif os(Linux)
      "linux"
    #elseif os(Windows)
      "windows"
    #else
      "unknown"
    #endif
  }
}
