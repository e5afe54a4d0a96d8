// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/drawing/shapes.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

#include <fmt/ranges.h>

#include <kvbench/core/utf8.hpp>
#include <kvbench/report/drawing/svg.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

constexpr double pdf_margin = 12, points_per_px = 0.75;
constexpr double circle_arm = 0.5523;  // of the four Bezier curves that draw a circle of radius 1

/// Widths of the characters 32 to 126 of Helvetica, in thousandths of the size.
constexpr std::array<int, 95> helvetica = {
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333,  278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667,  611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278,  556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500,  500, 334, 260, 334, 584};

/// Characters of one font.
struct TextRun {
  const char* font;  ///< F1 Helvetica, F2 its bold, F3 Zapf Dingbats
  std::string codes;
  double width = 0;  ///< relative to the size
};

struct PdfCharacter {
  std::string_view utf8;
  const char* font;
  char code;
  int width;
};
constexpr PdfCharacter other_characters[] = {
    {"–", "F1", '\x96', 556}, {"…", "F1", '\x85', 1000}, {"▲", "F3", '\x73', 892}, {"▼", "F3", '\x74', 892}};

std::vector<TextRun> runs_of(const std::string& text, bool bold) {
  std::vector<TextRun> runs;
  const auto add = [&](const char* font, char code, int width) {
    if (runs.empty() || std::string_view(runs.back().font) != font) runs.push_back({font, "", 0});
    if (code == '(' || code == ')' || code == '\\') runs.back().codes += '\\';
    runs.back().codes += code;
    runs.back().width += width / 1000.;
  };
  const char* plain = bold ? "F2" : "F1";
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = std::max<std::size_t>(1, utf8_character(std::string_view(text).substr(i)));
    const std::string_view character = std::string_view(text).substr(i, length);
    const auto* known = std::ranges::find(other_characters, character, &PdfCharacter::utf8);
    const char c = length == 1 && character[0] >= ' ' && character[0] <= '~' ? character[0] : '?';
    if (known != std::end(other_characters))
      add(std::string_view(known->font) == "F1" ? plain : known->font, known->code, known->width);
    else
      add(plain, c, helvetica[static_cast<std::size_t>(c - ' ')]);
    i += length;
  }
  return runs;
}

/// "0.1 0.2 0.3" of "#rrggbb" or "#rgb".
std::string rgb_of(const std::string& colour) {
  std::string digits = colour.substr(1), out;
  if (digits.size() == 3) digits = {digits[0], digits[0], digits[1], digits[1], digits[2], digits[2]};
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    int value = 0;
    std::from_chars(digits.data() + i, digits.data() + i + 2, value, 16);
    out += fmt::format("{}{:.3f}", out.empty() ? "" : " ", value / 255.);
  }
  return out;
}

/// The operators of the page; opacities are collected as graphics states.
class PdfContent {
 public:
  explicit PdfContent(double height) {
    out_ = fmt::format("{0} 0 0 -{0} {1} {2} cm 1 j\n", points_per_px, svg::px(pdf_margin * points_per_px),
                       svg::px((height + pdf_margin) * points_per_px));
  }

  void add(const Shape& shape) {
    const ShapeStyle& style = shape.style;
    const bool fills = style.fill != "none", strokes = style.stroke != "none";
    if (!fills && !strokes) return;
    out_ += fmt::format("q /G{} gs\n", state_of(style.opacity));
    if (fills) out_ += rgb_of(style.fill) + " rg\n";
    if (strokes) {
      out_ += fmt::format("{} RG {} w [{}] 0 d\n", rgb_of(style.stroke), svg::px(style.stroke_width),
                          fmt::join(style.dashes, " "));
    }
    if (shape.text.empty()) {
      shape.radius > 0 ? circle(shape) : outline(shape);
      out_ += fills && strokes ? "B\n" : fills ? "f\n" : "S\n";
    } else {
      text(shape);
    }
    out_ += "Q\n";
  }

  const std::string& text() const { return out_; }
  const std::vector<double>& opacities() const { return opacities_; }

 private:
  std::size_t state_of(double opacity) {
    const auto known = std::ranges::find(opacities_, opacity);
    const auto at = static_cast<std::size_t>(known - opacities_.begin());
    if (known == opacities_.end()) opacities_.push_back(opacity);
    return at;
  }

  void outline(const Shape& shape) {
    for (const Polyline& line : shape.lines) {
      for (std::size_t i = 0; i < line.points.size(); ++i)
        out_ += fmt::format("{} {} {}\n", svg::px(line.points[i].first), svg::px(line.points[i].second),
                            i == 0 ? "m" : "l");
      if (line.closed) out_ += "h\n";
    }
  }

  void circle(const Shape& s) {
    constexpr std::pair<int, int> corners[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    const auto at = [&](double dx, double dy) {
      return svg::px(s.x + dx * s.radius) + " " + svg::px(s.y + dy * s.radius);
    };
    out_ += at(1, 0) + " m\n";
    for (std::size_t i = 0; i < 4; ++i) {
      const auto [ax, ay] = corners[i];
      const auto [bx, by] = corners[(i + 1) % 4];
      out_ += fmt::format("{} {} {} c\n", at(ax + circle_arm * bx, ay + circle_arm * by),
                          at(bx + circle_arm * ax, by + circle_arm * ay), at(bx, by));
    }
    out_ += "h\n";
  }

  void text(const Shape& s) {
    const std::vector<TextRun> runs = runs_of(s.text, s.style.bold);
    double width = 0;
    for (const TextRun& run : runs) width += run.width * s.style.font_size;
    const double x = s.x - (s.anchor == 'm' ? width / 2 : s.anchor == 'e' ? width : 0);
    out_ += fmt::format("BT 1 0 0 -1 {} {} Tm\n", svg::px(x), svg::px(s.y));
    for (const TextRun& run : runs)
      out_ += fmt::format("/{} {} Tf ({}) Tj\n", run.font, svg::px(s.style.font_size), run.codes);
    out_ += "ET\n";
  }

  std::string out_;
  std::vector<double> opacities_;
};

/// Objects in the order of their numbers, with the table of their places.
std::string pdf_of(const std::vector<std::string>& objects) {
  // The second line: not a text file.
  std::string out = fmt::format("%PDF-1.4\n%\xE2\xE3\xCF\xD3\n% {}\n", written_by), places;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    places += fmt::format("{:010} 00000 n \n", out.size());
    out += fmt::format("{} 0 obj\n{}\nendobj\n", i + 1, objects[i]);
  }
  const std::size_t table = out.size();
  return out + fmt::format(
                   "xref\n0 {0}\n0000000000 65535 f \n{1}trailer\n<< /Size {0} /Root 1 0 R >>\nstartxref\n{2}\n%%EOF\n",
                   objects.size() + 1, places, table);
}

}  // namespace

std::string pdf_file(const Drawing& drawing) {
  const ShapeDrawing d = shapes_of(drawing);
  PdfContent content(d.height);
  for (const Shape& shape : d.shapes) content.add(shape);
  std::string states;
  for (std::size_t i = 0; i < content.opacities().size(); ++i) {
    const std::string opacity = svg::px(content.opacities()[i]);
    states += fmt::format("/G{} << /ca {} /CA {} >> ", i, opacity, opacity);
  }
  const auto font = [](const char* name, const char* encoding) {
    return fmt::format("<< /Type /Font /Subtype /Type1 /BaseFont /{}{} >>", name, encoding);
  };
  const double width = (d.width + 2 * pdf_margin) * points_per_px, height = (d.height + 2 * pdf_margin) * points_per_px;
  return pdf_of(
      {"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
       fmt::format("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {} {}] /Contents 4 0 R /Resources << /Font << "
                   "/F1 5 0 R /F2 6 0 R /F3 7 0 R >> /ExtGState << {}>> >> >>",
                   svg::px(width), svg::px(height), states),
       fmt::format("<< /Length {} >>\nstream\n{}endstream", content.text().size(), content.text()),
       font("Helvetica", " /Encoding /WinAnsiEncoding"), font("Helvetica-Bold", " /Encoding /WinAnsiEncoding"),
       font("ZapfDingbats", "")});
}

}  // namespace kvbench::report
