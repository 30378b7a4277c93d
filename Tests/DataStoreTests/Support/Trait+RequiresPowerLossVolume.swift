import TestSupport
import Testing

extension Trait where Self == ConditionTrait {
  /// Skips the test unless the environment requests a ``PowerLossVolume``.
  static var requiresPowerLossVolume: Self {
    .enabled(if: PowerLossVolume.isRequested, "\(PowerLossVolume.requirement)")
  }
}
