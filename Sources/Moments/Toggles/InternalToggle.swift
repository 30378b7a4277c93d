/// A toggle that is stored on the device.
public enum InternalToggle: String, ToggleType, CaseIterable {
  /// Whether moments are fetched with their likes and displayed with a like button.
  case isLikeButtonForMomentEnabled
}
