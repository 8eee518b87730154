// Elements of SVG as text.
#include "svg/element.hpp"

#include <fmt/format.h>

namespace syncopate::tools::svg {
namespace {

std::string class_of(std::string_view look) { return look.empty() ? "" : fmt::format(" class=\"{}\"", look); }
std::string behind(std::string_view more) { return more.empty() ? "" : fmt::format(" {}", more); }

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += static_cast<unsigned char>(c) < ' ' && c != '\n' ? ' ' : c;
    }
  return result;
}

std::string px(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string line(std::string_view look, Point from, Point to, std::string_view more) {
  return fmt::format("<line{} x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"{}/>\n", class_of(look), px(from.x), px(from.y),
                     px(to.x), px(to.y), behind(more));
}

std::string text(std::string_view look, Point at, std::string_view words, std::string_view more) {
  return fmt::format("<text{} x=\"{}\" y=\"{}\"{}>{}</text>\n", class_of(look), px(at.x), px(at.y), behind(more),
                     escaped(words));
}

std::string circle(std::string_view look, Point centre, double radius, std::string_view more) {
  return fmt::format("<circle{} cx=\"{}\" cy=\"{}\" r=\"{}\"{}/>\n", class_of(look), px(centre.x), px(centre.y),
                     px(radius), behind(more));
}

std::string polyline(std::string_view look, std::span<const Point> points, std::string_view more) {
  std::string path;
  for (const Point& point : points) path += fmt::format("{},{} ", px(point.x), px(point.y));
  return fmt::format("<polyline{} points=\"{}\"{}/>\n", class_of(look), path, behind(more));
}

std::string rect(std::string_view look, const Box& box, std::string_view more, std::string_view title) {
  const std::string bar = fmt::format("<rect{} x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}", class_of(look),
                                      px(box.x), px(box.y), px(box.width), px(box.height), behind(more));
  return title.empty() ? bar + "/>\n" : fmt::format("{}><title>{}</title></rect>\n", bar, escaped(title));
}

}  // namespace syncopate::tools::svg
