import TestSupport
import Testing

extension Trait where Self == ConditionTrait {
  /// Runs the test only where a volume that can lose power can be mounted; fails it there instead if it is required.
  static var requiresPowerLossVolume: Self {
    .enabled(if: PowerLossVolume.isAvailable || PowerLossVolume.isRequired, "\(PowerLossVolume.requirement)")
  }
}
