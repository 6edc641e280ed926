// A queue that costs nothing while it is empty: a vector and the place of its front.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace monarch::base {

template <typename T>
class Fifo {
 public:
  [[nodiscard]] bool empty() const noexcept { return front_ == items_.size(); }
  [[nodiscard]] std::size_t size() const noexcept { return items_.size() - front_; }
  [[nodiscard]] T& front() noexcept { return items_[front_]; }
  [[nodiscard]] T& operator[](std::size_t index) noexcept { return items_[front_ + index]; }
  [[nodiscard]] const T& operator[](std::size_t index) const noexcept {
    return items_[front_ + index];
  }

  void push(T item) { items_.push_back(std::move(item)); }

  T pop() {
    T item = std::move(items_[front_]);
    if (++front_ == items_.size()) {
      clear();
    } else if (front_ >= kCompact && front_ * 2 >= items_.size()) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(front_));
      front_ = 0;
    }
    return item;
  }

  // Adds an item in front of the first one that `behind` is true for; at the end where it is for none.
  template <typename Predicate>
  void push_before(T item, Predicate behind) {
    const auto place =
        std::find_if(items_.begin() + static_cast<std::ptrdiff_t>(front_), items_.end(), behind);
    items_.insert(place, std::move(item));
  }

  // Removes the items that `drop` is true for; their order stays.
  template <typename Predicate>
  void remove_if(Predicate drop) {
    std::vector<T> kept;
    for (std::size_t i = front_; i < items_.size(); ++i) {
      if (!drop(items_[i])) kept.push_back(std::move(items_[i]));
    }
    items_ = std::move(kept);
    front_ = 0;
  }

  void clear() {
    front_ = 0;
    if (items_.capacity() > kCompact) {
      std::vector<T>().swap(items_);
    } else {
      items_.clear();
    }
  }

 private:
  static constexpr std::size_t kCompact = 64;

  std::vector<T> items_;
  std::size_t front_ = 0;
};

}  // namespace monarch::base
