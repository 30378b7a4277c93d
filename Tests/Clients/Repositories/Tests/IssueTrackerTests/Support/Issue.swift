import IssueTracker

/// An issue of the tracker, as opposed to Swift Testing's `Issue`.
typealias Issue = IssueTracker.Issue
