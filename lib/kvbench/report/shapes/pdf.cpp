// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>
#include <memory>
#include <numbers>

#include <cairo-pdf.h>

#include <kvbench/core/error.hpp>
#include <kvbench/report/shapes/looks.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

constexpr double pdf_margin = 12, points_per_px = 0.75;

using Surface = std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)>;
using Context = std::unique_ptr<cairo_t, decltype(&cairo_destroy)>;

cairo_status_t append_bytes(void* out, const unsigned char* bytes, unsigned int count) {
  try {
    static_cast<std::string*>(out)->append(bytes, bytes + count);
    return CAIRO_STATUS_SUCCESS;
  } catch (const std::bad_alloc&) {
    return CAIRO_STATUS_NO_MEMORY;
  }
}

/// Of "#rrggbb".
void set_colour(cairo_t* to, const std::string& colour, double opacity) {
  std::array<double, 3> rgb{};
  for (std::size_t i = 0; i < 3; ++i) {
    int value = 0;
    std::from_chars(colour.data() + 1 + 2 * i, colour.data() + 3 + 2 * i, value, 16);
    rgb[i] = value / 255.;
  }
  cairo_set_source_rgba(to, rgb[0], rgb[1], rgb[2], opacity);
}

/// Draws the shapes that are no groups.
struct PdfShape {
  cairo_t* to;
  const ShapeStyle& style;

  void operator()(const Outline& outline) const {
    for (const Polyline& line : outline.lines) {
      cairo_new_sub_path(to);
      for (const auto& [x, y] : line.points) cairo_line_to(to, x, y);
      if (line.closed) cairo_close_path(to);
    }
    paint();
  }
  void operator()(const Circle& circle) const {
    cairo_new_sub_path(to);
    cairo_arc(to, circle.centre.first, circle.centre.second, circle.radius, 0, 2 * std::numbers::pi);
    paint();
  }
  void operator()(const Text& text) const {
    cairo_select_font_face(to, "Helvetica", CAIRO_FONT_SLANT_NORMAL,
                           style.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(to, style.font_size);
    cairo_text_extents_t extents;
    cairo_text_extents(to, text.content.c_str(), &extents);
    constexpr double parts[] = {0, 0.5, 1};  // of the width, left of the anchor
    cairo_move_to(to, text.at.first - parts[static_cast<std::size_t>(text.anchor)] * extents.x_advance, text.at.second);
    set_colour(to, style.fill, style.opacity);
    cairo_show_text(to, text.content.c_str());
    cairo_new_path(to);
  }
  void operator()(const Group&) const {}

  void paint() const {
    if (style.fill != "none") {
      set_colour(to, style.fill, style.opacity);
      cairo_fill_preserve(to);
    }
    if (style.stroke != "none") {
      set_colour(to, style.stroke, style.opacity);
      cairo_set_line_width(to, style.stroke_width);
      cairo_set_dash(to, style.dashes.data(), static_cast<int>(style.dashes.size()), 0);
      cairo_stroke_preserve(to);
    }
    cairo_new_path(to);
  }
};

}  // namespace

std::string pdf_file(const Drawing& drawing) {
  std::string out;
  const auto points = [](double length) { return (length + 2 * pdf_margin) * points_per_px; };
  const Surface surface(
      cairo_pdf_surface_create_for_stream(append_bytes, &out, points(drawing.width), points(drawing.height)),
      cairo_surface_destroy);
  cairo_pdf_surface_restrict_to_version(surface.get(), CAIRO_PDF_VERSION_1_4);  // which every LaTeX includes
  cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_TITLE, drawing.label().c_str());
  cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATOR, std::string(written_by).c_str());
  // The same drawing gives the same bytes at any time.
  cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATE_DATE, "");
  const Context context(cairo_create(surface.get()), cairo_destroy);
  cairo_scale(context.get(), points_per_px, points_per_px);
  cairo_translate(context.get(), pdf_margin, pdf_margin);
  cairo_set_line_join(context.get(), CAIRO_LINE_JOIN_ROUND);
  for (const StyledShape& s : styled_shapes(drawing)) std::visit(PdfShape{context.get(), s.style}, s.shape->form);
  cairo_surface_finish(surface.get());
  for (const cairo_status_t status : {cairo_status(context.get()), cairo_surface_status(surface.get())}) {
    if (status != CAIRO_STATUS_SUCCESS)
      throw Error("the PDF file of the figure '{}' failed in cairo: {}", drawing.label(),
                  cairo_status_to_string(status));
  }
  return out;
}

}  // namespace kvbench::report
