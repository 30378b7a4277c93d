import TestSupport
import Testing

extension Trait where Self == ConditionTrait {
  /// Skips the test if no ``PowerLossVolume`` can be mounted, unless ``PowerLossVolume/isRequired`` is `true`.
  ///
  /// If a volume is required but can't be mounted, the test runs and fails.
  static var requiresPowerLossVolume: Self {
    .enabled(if: PowerLossVolume.isAvailable || PowerLossVolume.isRequired, "\(PowerLossVolume.requirement)")
  }
}
