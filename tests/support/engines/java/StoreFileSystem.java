import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import javax.xml.parsers.DocumentBuilderFactory;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;
import org.apache.hadoop.util.functional.RemoteIterators;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

/**
 * A file system over the HTTP of an S3 server, for tests: only what is read, without signatures.
 *
 * It stands in for hadoop-aws, which no registry of the tests has. It lists with ETags and raises what hadoop-aws raises:
 * FileNotFoundException for 404, AccessDeniedException for 403, and IOException for all else.
 */
public final class StoreFileSystem extends FileSystem {
    private URI uri;
    private String endpoint;

    /** A status with the ETag of its object. */
    public static final class Stored extends LocatedFileStatus implements EtagSource {
        private final String etag;

        Stored(FileStatus status, String etag) {
            super(status, new BlockLocation[0]);
            this.etag = etag;
        }

        @Override
        public String getEtag() {
            return etag;
        }
    }

    @Override
    public void initialize(URI name, Configuration conf) throws IOException {
        super.initialize(name, conf);
        uri = URI.create(name.getScheme() + "://" + name.getAuthority());
        endpoint = conf.get("store.endpoint");
    }

    @Override
    public URI getUri() {
        return uri;
    }

    @Override
    public Path getWorkingDirectory() {
        return new Path(uri + "/");
    }

    @Override
    public RemoteIterator<LocatedFileStatus> listFiles(Path path, boolean recursive) throws IOException {
        String key = keyOf(path);
        List<LocatedFileStatus> found = new ArrayList<>();
        for (LocatedFileStatus status : listed(key)) {
            String name = keyOf(status.getPath());
            if (name.equals(key) || key.isEmpty() || name.startsWith(key + "/")) {
                found.add(status);
            }
        }
        if (found.isEmpty()) {
            throw new FileNotFoundException("No such file or directory: " + path);
        }
        return RemoteIterators.remoteIteratorFromIterable(found);
    }

    @Override
    public FileStatus[] listStatus(Path path) throws IOException {
        return RemoteIterators.toList(listFiles(path, true)).toArray(new FileStatus[0]);
    }

    @Override
    public FileStatus getFileStatus(Path path) throws IOException {
        for (LocatedFileStatus status : listed(keyOf(path))) {
            if (keyOf(status.getPath()).equals(keyOf(path))) {
                return status;
            }
        }
        throw new FileNotFoundException("No such file or directory: " + path);
    }

    @Override
    public FSDataInputStream open(Path path, int buffer) throws IOException {
        return new FSDataInputStream(new Content(path, getFileStatus(path).getLen()));
    }

    private List<LocatedFileStatus> listed(String prefix) throws IOException {
        List<LocatedFileStatus> found = new ArrayList<>();
        String next = "";
        while (next != null) {
            String query = "?list-type=2&max-keys=3&encoding-type=url&prefix=" + quoted(prefix);
            Element page;
            try (InputStream content = asked(query + next, null).getInputStream()) {
                page = DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(content).getDocumentElement();
            } catch (org.xml.sax.SAXException | javax.xml.parsers.ParserConfigurationException error) {
                throw new IOException(error);
            }
            NodeList objects = page.getElementsByTagName("Contents");
            for (int place = 0; place < objects.getLength(); place++) {
                found.add(status((Element) objects.item(place)));
            }
            String token = textOf(page, "NextContinuationToken");
            next = token == null ? null : "&continuation-token=" + quoted(token);
        }
        return found;
    }

    private LocatedFileStatus status(Element object) {
        String name = URLDecoder.decode(textOf(object, "Key"), StandardCharsets.UTF_8);
        FileStatus plain = new FileStatus(Long.parseLong(textOf(object, "Size")), false, 1, 1 << 25,
            Instant.parse(textOf(object, "LastModified")).toEpochMilli(), 0, FsPermission.getFileDefault(), "", "",
            new Path(uri.getScheme(), uri.getAuthority(), "/" + name));
        return new Stored(plain, textOf(object, "ETag"));
    }

    private HttpURLConnection asked(String rest, String range) throws IOException {
        URI address = URI.create(endpoint + "/" + uri.getAuthority() + rest);
        HttpURLConnection asked = (HttpURLConnection) address.toURL().openConnection();
        asked.setRequestProperty("Authorization",
            "AWS4-HMAC-SHA256 Credential=stranger/20260101/eu/s3/aws4_request, SignedHeaders=host, Signature=0");
        if (range != null) {
            asked.setRequestProperty("Range", range);
        }
        switch (asked.getResponseCode()) {
            case 200, 206:
                return asked;
            case 403:
                throw new AccessDeniedException("secret-key-id", null, "403 Forbidden");
            case 404:
                throw new FileNotFoundException(rest);
            default:
                throw new IOException("secret-key-id " + asked.getResponseCode());
        }
    }

    /** The bytes of an object, each piece by a request. */
    private final class Content extends FSInputStream {
        private final Path path;
        private final long size;
        private long at;

        Content(Path path, long size) {
            this.path = path;
            this.size = size;
        }

        @Override
        public void seek(long place) {
            at = place;
        }

        @Override
        public long getPos() {
            return at;
        }

        @Override
        public boolean seekToNewSource(long place) {
            return false;
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] into, int from, int length) throws IOException {
            if (at >= size) {
                return -1;
            }
            String name = quoted(keyOf(path)).replace("%2F", "/");
            String range = "bytes=" + at + "-" + (Math.min(at + length, size) - 1);
            try (InputStream content = asked("/" + name, range).getInputStream()) {
                int count = content.readNBytes(into, from, length);
                at += count;
                return count;
            }
        }
    }

    @Override
    public FSDataOutputStream create(Path path, FsPermission permission, boolean overwrite, int buffer,
            short replication, long block, Progressable progress) throws IOException {
        throw new IOException("read only");
    }

    @Override
    public FSDataOutputStream append(Path path, int buffer, Progressable progress) throws IOException {
        throw new IOException("read only");
    }

    @Override
    public boolean rename(Path from, Path to) throws IOException {
        throw new IOException("read only");
    }

    @Override
    public boolean delete(Path path, boolean recursive) throws IOException {
        throw new IOException("read only");
    }

    @Override
    public boolean mkdirs(Path path, FsPermission permission) throws IOException {
        throw new IOException("read only");
    }

    @Override
    public void setWorkingDirectory(Path path) {
    }

    private static String textOf(Element element, String name) {
        NodeList found = element.getElementsByTagName(name);
        return found.getLength() == 0 ? null : found.item(0).getTextContent();
    }

    private static String quoted(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }

    private static String keyOf(Path path) {
        return path.toUri().getPath().replaceFirst("^/", "");
    }
}
