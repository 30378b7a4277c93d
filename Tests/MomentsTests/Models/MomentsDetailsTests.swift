import Foundation
import Moments
import Testing

struct MomentsDetailsTests {
  private static let json = """
    {
      "userDetails": {
        "id": "0",
        "name": "Jake Lin",
        "avatar": "https://example.com/jake.png",
        "backgroundImage": "https://example.com/background.png"
      },
      "moments": [
        {
          "id": "0",
          "userDetails": {"name": "Taylor Swift", "avatar": "https://example.com/taylor.png"},
          "type": "PHOTOS",
          "title": "the pic is awesome",
          "photos": ["https://example.com/1.png", "https://example.com/2.png"],
          "createdDate": "1605521360",
          "isLiked": true,
          "likes": [{"id": "0", "avatar": "https://example.com/jake.png"}]
        },
        {
          "id": "1",
          "userDetails": {"name": "李晓雯", "avatar": "not a URL"},
          "type": "URL",
          "title": null,
          "url": "https://example.com/article",
          "photos": [],
          "createdDate": "yesterday"
        },
        {
          "id": "2",
          "userDetails": {"name": "Mattt", "avatar": ""},
          "type": "VIDEO",
          "title": "First ice",
          "url": null,
          "photos": [],
          "createdDate": "1605496500",
          "isLiked": false,
          "likes": [],
          "length": 12
        }
      ],
      "next": "page-2"
    }
    """

  private static let timeline = MomentsDetails(
    userDetails: .init(
      id: "0", name: "Jake Lin", avatar: "https://example.com/jake.png",
      backgroundImage: "https://example.com/background.png"),
    moments: [
      .init(
        id: "0",
        userDetails: .init(name: "Taylor Swift", avatar: "https://example.com/taylor.png"),
        type: .photos,
        title: "the pic is awesome",
        photos: ["https://example.com/1.png", "https://example.com/2.png"],
        createdDate: "1605521360",
        isLiked: true,
        likes: [.init(id: "0", avatar: "https://example.com/jake.png")]),
      .init(
        id: "1",
        userDetails: .init(name: "李晓雯", avatar: "not a URL"),
        type: .url,
        url: "https://example.com/article",
        photos: [],
        createdDate: "yesterday"),
      .init(
        id: "2",
        userDetails: .init(name: "Mattt", avatar: ""),
        type: .unknown("VIDEO"),
        title: "First ice",
        photos: [],
        createdDate: "1605496500",
        isLiked: false,
        likes: []),
    ])

  @Test func `Every known field of a timeline is decoded, and unknown fields are ignored`() throws {
    #expect(try JSONDecoder().decode(MomentsDetails.self, from: Data(Self.json.utf8)) == Self.timeline)
  }

  @Test func `A timeline survives encoding and decoding`() throws {
    let encoded = try JSONEncoder().encode(Self.timeline)
    #expect(try JSONDecoder().decode(MomentsDetails.self, from: encoded) == Self.timeline)
  }

  @Test func `Fields without a value aren't encoded`() throws {
    let encoded = try JSONEncoder().encode(Self.timeline.moments[1])
    let object = try #require(try JSONSerialization.jsonObject(with: encoded) as? [String: Any])
    #expect(Set(object.keys) == ["id", "userDetails", "type", "url", "photos", "createdDate"])
  }

  @Test(arguments: ["URL", "PHOTOS", "VIDEO", "", "photos", "图片"])
  func `A moment's type keeps the server's raw value`(rawValue: String) throws {
    let encoded = try JSONEncoder().encode([rawValue])
    let types = try JSONDecoder().decode([MomentsDetails.Moment.MomentType].self, from: encoded)
    #expect(types.map(\.rawValue) == [rawValue])
    #expect(try JSONDecoder().decode([String].self, from: JSONEncoder().encode(types)) == [rawValue])
  }

  @Test func `Types with the same raw value are equal, however they were created`() {
    typealias MomentType = MomentsDetails.Moment.MomentType
    #expect(MomentType(rawValue: "URL") == .url)
    #expect(MomentType.unknown("PHOTOS") == .photos)
    #expect(Set([MomentType.unknown("PHOTOS"), .photos, .url]).count == 2)
    #expect(MomentType.unknown("VIDEO") != .unknown("video"))
  }

  @Test func `Changing a copy of a timeline leaves the original unchanged`() {
    var changed = Self.timeline
    changed.moments[0].isLiked = false
    changed.moments[0].likes = []
    #expect(Self.timeline.moments[0].isLiked == true)
    #expect(changed.moments[0].likes == [])
    #expect(changed.moments[1...] == Self.timeline.moments[1...])
  }
}
