#include "gpu.hpp"
#include "monarch/native/stream.hpp"

namespace monarch::bindings {

void bind_stream(nb::module_& module) {
  using native::Event;
  using native::Stream;
  nb::class_<Stream> stream(module, "Stream");
  nb::class_<Event> event(module, "Event");
  stream
      .def_static(
          "create", [](int device, int priority) { return take(Stream::create(device, priority)); },
          nb::arg("device"), nb::arg("priority") = 0, WithoutGil())
      .def_prop_ro("device", &Stream::device)
      .def_prop_ro(
          "handle",
          [](const Stream& self) { return reinterpret_cast<std::uintptr_t>(self.handle()); })
      .def(
          "synchronize", [](Stream& self) { take(self.synchronize()); }, WithoutGil())
      .def(
          "query", [](Stream& self) { return take(self.query()); }, WithoutGil())
      .def(
          "wait", [](Stream& self, const Event& after) { take(self.wait(after)); },
          nb::arg("event"), WithoutGil())
      .def("release", [](Stream& self) { take(self.release()); }, WithoutGil());
  event
      .def_static(
          "create", [](int device, bool timing) { return take(Event::create(device, timing)); },
          nb::arg("device"), nb::arg("timing") = false, WithoutGil())
      .def_prop_ro("device", &Event::device)
      .def_prop_ro(
          "handle",
          [](const Event& self) { return reinterpret_cast<std::uintptr_t>(self.handle()); })
      .def(
          "record", [](Event& self, const Stream& on) { take(self.record(on)); }, nb::arg("stream"),
          WithoutGil())
      .def(
          "synchronize", [](Event& self) { take(self.synchronize()); }, WithoutGil())
      .def(
          "query", [](Event& self) { return take(self.query()); }, WithoutGil())
      .def(
          "elapsed_since",
          [](Event& self, const Event& start) { return take(self.elapsed_since(start)); },
          nb::arg("start"), WithoutGil())
      .def("release", [](Event& self) { take(self.release()); }, WithoutGil());
}

}  // namespace monarch::bindings
