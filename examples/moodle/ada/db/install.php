<?php
// Registers the output when the plugin is installed, as Moodle's own outputs do.

defined('MOODLE_INTERNAL') || die();

/**
 * Add the processor to those that users can choose.
 */
function xmldb_message_ada_install() {
    global $DB;

    $DB->insert_record('message_processors', (object) ['name' => 'ada']);
    return true;
}
