<?php
// The settings, on the page "Message outputs" of the administration.

defined('MOODLE_INTERNAL') || die();

if ($ADMIN->fulltree) {
    foreach (['url' => '', 'sender' => 'moodle', 'source' => ''] as $name => $default) {
        $title = new lang_string($name, 'message_ada');
        $help = new lang_string($name . '_help', 'message_ada');
        $settings->add(new admin_setting_configtext('message_ada/' . $name, $title, $help, $default, PARAM_RAW_TRIMMED));
    }
    $title = new lang_string('key', 'message_ada');
    $help = new lang_string('key_help', 'message_ada');
    $settings->add(new admin_setting_configpasswordunmask('message_ada/key', $title, $help, ''));
}
