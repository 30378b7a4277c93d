import TestSupport
import Testing

extension Trait where Self == ConditionTrait {
  /// Runs the test only if a power-loss volume can be mounted, or if one is required, so that its absence is a failure.
  static var requiresPowerLossVolume: Self {
    .enabled(if: PowerLossVolume.isAvailable || PowerLossVolume.isRequired, "\(PowerLossVolume.requirement)")
  }
}
