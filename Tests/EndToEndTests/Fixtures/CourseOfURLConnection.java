// Walks the course with HttpURLConnection: java CourseOfURLConnection.java URL. Each step prints one line.
import java.net.HttpURLConnection;
import java.net.URL;

class CourseOfURLConnection {
    static String base;

    static void ask(String step, String method, String path, byte[] body, boolean chunked, boolean counts)
            throws Exception {
        var connection = (HttpURLConnection) new URL(base + path).openConnection();
        connection.setRequestMethod(method);
        if (body != null) {
            connection.setDoOutput(true);
            if (chunked) connection.setChunkedStreamingMode(4096);
            try (var out = connection.getOutputStream()) { out.write(body); }
        }
        try (var in = connection.getInputStream()) {
            var bytes = in.readAllBytes();
            System.out.println(
                step + " " + connection.getResponseCode() + " " + (counts ? bytes.length : new String(bytes)));
        }
    }

    public static void main(String[] arguments) throws Exception {
        base = arguments[0];
        ask("get", "GET", "/items?x=1", null, false, false);
        ask("post", "POST", "/count", "hello=world".getBytes(), false, false);
        ask("chunked", "POST", "/count", new byte[200000], true, false);
        ask("big", "GET", "/big", null, false, true);
        ask("head", "HEAD", "/items?x=1", null, false, false);
        ask("delete", "DELETE", "/items?x=1", null, false, false);
    }
}
