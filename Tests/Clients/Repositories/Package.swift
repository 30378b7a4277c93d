// swift-tools-version: 6.2

import PackageDescription

let swiftSettings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
  name: "Repositories",
  platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
  products: [.library(name: "Repositories", targets: ["Repositories"])],
  dependencies: [.package(name: "Moments", path: "../../..")],
  targets: [
    .target(
      name: "Repositories",
      dependencies: [
        .product(name: "DataStore", package: "Moments"),
        .product(name: "Repository", package: "Moments"),
      ],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "RepositoriesTests",
      dependencies: [
        "Repositories",
        .product(name: "DataStore", package: "Moments"),
        .product(name: "Multicast", package: "Moments"),
        .product(name: "MulticastTesting", package: "Moments"),
        .product(name: "Repository", package: "Moments"),
        .product(name: "RepositoryTesting", package: "Moments"),
      ],
      swiftSettings: swiftSettings),
  ]
)
