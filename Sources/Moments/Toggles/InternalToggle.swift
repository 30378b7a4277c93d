/// A toggle that is kept on the device.
public enum InternalToggle: String, ToggleType, CaseIterable {
  /// Whether moments come with their likes, and with a button for one's own.
  case isLikeButtonForMomentEnabled
  /// Whether the app shows what only its makers need.
  case debug
}
