internal import Foundation

/// The present time: according to the calendar, for what is stored, and since the repository's creation, for what is
/// measured.
struct Moment {
  let time: Date
  let elapsed: Duration
}
