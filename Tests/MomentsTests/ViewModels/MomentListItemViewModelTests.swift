import Foundation
import Moments
import MomentsTesting
import Testing

@Suite struct MomentListItemViewModelTests {
  private func row(_ moment: MomentsDetails.Moment, now: TimeInterval = 1_605_532_160) -> MomentListItemViewModel {
    MomentListItemViewModel(
      moment: moment, momentsRepo: RepoHarness().repo, now: Date(timeIntervalSince1970: now),
      locale: Locale(identifier: "en_US"))
  }

  @Test func `A row shows the content of its moment`() {
    let likes = [
      MomentsDetails.Moment.Like(id: "1", avatar: "https://example.com/1.png"),
      MomentsDetails.Moment.Like(id: "2", avatar: "not a url"),
      MomentsDetails.Moment.Like(id: "3", avatar: "https://example.com/3.png"),
    ]
    let row = row(.fixture(id: "9", photos: ["https://example.com/a.png", "https://example.com/b.png"], likes: likes))
    #expect(row.id == "9")
    #expect(row.userName == "Taylor Swift")
    #expect(row.userAvatarURL == URL(string: "https://example.com/avatars/taylor.png"))
    #expect(row.title == "the pic is awesome")
    #expect(row.photoURL == URL(string: "https://example.com/a.png"))
    #expect(row.likes.map(\.absoluteString) == ["https://example.com/1.png", "https://example.com/3.png"])
    #expect(row.likeCount == likes.count)
  }

  @Test func `The photo URL is nil without a photo and for an invalid URL`() {
    #expect(row(.fixture(photos: [])).photoURL == nil)
    #expect(row(.fixture(photos: ["bad url", "https://example.com/b.png"])).photoURL == nil)
  }

  @Test func `A moment whose reply excluded likes is not liked and has no likes`() {
    let row = row(.fixture(isLiked: nil, likes: nil))
    #expect(!row.isLiked)
    #expect(row.likes == [])
    #expect(row.likeCount == 0)
  }

  @Test(arguments: [
    (1_605_521_420.0, "1 minute ago"), (1_605_532_160, "3 hours ago"), (1_605_780_560, "3 days ago"),
  ])
  func `The date is described in full words, relative to the given time`(_ now: TimeInterval, _ words: String) {
    #expect(row(.fixture(createdDate: "1605521360"), now: now).postDateDescription == words)
  }

  @Test(arguments: ["nan", "-nan", "inf", "-infinity", "", "yesterday", "2020-11-16"])
  func `The description of a date that isn't a finite number is nil`(_ createdDate: String) {
    #expect(row(.fixture(createdDate: createdDate)).postDateDescription == nil)
  }

  @Test func `The date is described in the given language`() {
    let row = MomentListItemViewModel(
      moment: .fixture(), momentsRepo: RepoHarness().repo, now: Date(timeIntervalSince1970: 1_605_532_160),
      locale: Locale(identifier: "zh_CN"))
    #expect(row.postDateDescription == "3小时前")
  }

  @Test func `Rows are equal if they show the same content`() {
    #expect(row(.fixture()) == row(.fixture()))
    #expect(row(.fixture()) != row(.fixture(isLiked: true)))
    #expect(row(.fixture()) != row(.fixture(id: "1")))
    #expect(row(.fixture()) != row(.fixture(title: nil)))
  }
}

@Suite struct UserProfileListItemViewModelTests {
  @Test func `A profile has a name and two URLs, and an invalid URL is nil`() {
    let profile = UserProfileListItemViewModel(
      userDetails: .init(id: "0", name: "Jake Lin", avatar: "https://example.com/a.png", backgroundImage: "no url"))
    #expect(profile.name == "Jake Lin")
    #expect(profile.avatarURL == URL(string: "https://example.com/a.png"))
    #expect(profile.backgroundImageURL == nil)
  }
}
